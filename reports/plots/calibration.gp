# What calibration measured, and the profile that was fitted to it.
# gnuplot -c calibration.gp DATA OUT png|svg
data = ARG1
here = ARG0[1:strlen(ARG0) - strlen("calibration.gp")]

# Statistics of a block without any row are not defined.
stats data index 2 using 7 name "ERRORS" nooutput
stats data using 1 name "ALL" nooutput
lines = ALL_blocks - 3
set terminal unknown
PRODUCTS_records = 0
BOUND_records = 0
stats data index 0 using 1 name "PRODUCTS" nooutput
stats data index 1 using 1 name "BOUND" nooutput

call here."style.gp" ARG2 ARG3 "1400" "1000"
array FAMILY[5] = ["products", "attention", "memory-bound", "optimizer", "collectives"]
array COLOUR[5] = ["#3b6fb6", "#7a5aa6", "#6fb1d6", "#4e9a5b", "#e08a2e"]
array LINE[8] = ["#3b6fb6", "#e08a2e", "#4e9a5b", "#7a5aa6", "#a33b3b", "#9c755f", "#6fb1d6", "#767676"]
set grid xtics ytics linecolor "#e4e4e4" linetype 1 linewidth 1
set ytics nomirror
set key samplen 1.2 textcolor "#333333" reverse Left

set multiplot layout 2, 2 margins 0.06, 0.975, 0.075, 0.95 spacing 0.075, 0.115
set logscale xy
set format x "10^{%L}"
set xtics rotate by 0

set title "Matrix products (GFLOP/s of a core)"
set xlabel "FLOP" offset 0, 0.4
set key bottom right inside
if (PRODUCTS_records > 0) {
    plot \
        data index 0 using 1:2 with points pointtype 7 pointsize 0.9 linecolor rgb MEASURED title "measured", \
        data index 0 using 1:3 with points pointtype 1 pointsize 1.1 linecolor rgb PREDICTED title "profile"
} else {
    set label 1 "none measured" at graph 0.5, 0.5 center textcolor rgb MUTED
    plot [1:10] [1:10] NaN notitle
    unset label 1
}

set title "Operations that memory bounds (GB/s)"
set xlabel "bytes" offset 0, 0.4
if (BOUND_records > 0) {
    plot \
        data index 1 using 1:2 with points pointtype 7 pointsize 0.9 linecolor rgb MEASURED title "measured", \
        data index 1 using 1:3 with points pointtype 1 pointsize 1.1 linecolor rgb PREDICTED title "profile"
} else {
    set label 1 "none measured" at graph 0.5, 0.5 center textcolor rgb MUTED
    plot [1:10] [1:10] NaN notitle
    unset label 1
}

set title "Collectives (microseconds): points measured, lines the profile"
set key top left inside noenhanced
if (lines > 0) {
    plot \
        for [i = 1:lines] data index i + 2 using 1:2 with points pointtype 7 pointsize 0.9 \
            linecolor rgb LINE[(i - 1) % 8 + 1] notitle, \
        for [i = 1:lines] data index i + 2 using 1:3 with lines linewidth 1.5 \
            linecolor rgb LINE[(i - 1) % 8 + 1] title columnheader(1)
} else {
    set label 1 "none measured" at graph 0.5, 0.5 center textcolor rgb MUTED
    plot [1:10] [1:10] NaN notitle
    unset label 1
}

unset logscale xy
set format x "%g"
set title "Errors of the profile (%), operations"
set xlabel "profile / measured - 1 (%); the outermost bars hold what is beyond" offset 0, 0.4
set key top right inside enhanced
set style fill solid 1.0 border linecolor "#ffffff"
set xrange [-57:57]
set yrange [0:1.15 * (ERRORS_max > 0 ? ERRORS_max : 1)]
set arrow 1 from 0, graph 0 to 0, graph 1 nohead linecolor "#8c8c8c" dashtype 2 front
plot for [f = 5:1:-1] data index 2 using (($1 + $2) / 2):(column(f + 2)):1:2:(0):(column(f + 2)) \
    with boxxyerror linecolor rgb COLOUR[f] title FAMILY[f]
unset multiplot
