# Step times by plan: predicted beside measured, with the error, and one against the other.
# gnuplot -c steps.gp DATA OUT png|svg
data = ARG1
here = ARG0[1:strlen(ARG0) - strlen("steps.gp")]

stats data using 2 name "P" nooutput
stats data using 3 name "M" nooutput
plans = P_records
top = P_max > M_max ? P_max : M_max
bottom = P_min < M_min ? P_min : M_min
height = 190 + 66 * plans
call here."style.gp" ARG2 ARG3 "1400" sprintf("%d", height < 520 ? 520 : height)

set multiplot
set style fill solid 1.0 noborder

# Left: pairs of bars, each under its plan's name (which may be long).
set origin 0, 0
set size 0.64, 1
set lmargin at screen 0.03
set rmargin at screen 0.62
set bmargin 4.5
set tmargin 3
set title "Step time by plan (ms)"
set border 1
unset grid
set grid xtics linecolor "#e4e4e4" linetype 1 linewidth 1
set xrange [0:1.22 * top]
spare = plans < 4 ? 0.5 * (4 - plans) : 0
set yrange [plans - 0.4 + spare:-0.6 - spare]
unset ytics
set key at screen 0.325, screen 0.03 center bottom horizontal samplen 1.2 width 3 textcolor "#333333" reverse Left
plot \
    data using ($2 / 2):($0 - 0.02):(0):2:($0 - 0.14):($0 + 0.10) \
        with boxxyerror linecolor rgb PREDICTED title "predicted", \
    data using ($3 / 2):($0 + 0.26):(0):3:($0 + 0.14):($0 + 0.38) \
        with boxxyerror linecolor rgb MEASURED title "measured", \
    data using (0):($0 - 0.32):1 with labels left offset 0.2, 0 noenhanced textcolor rgb INK notitle, \
    data using ($2 > $3 ? $2 : $3):($0 + 0.12):(sprintf("%+.1f %%", $4)) \
        with labels left offset 0.8, 0 font ",12" textcolor rgb INK notitle

# Right: predicted against measured; a band of 10 %.
set origin 0.64, 0
set size 0.36, 1
set lmargin at screen 0.715
set rmargin at screen 0.975
set title "Predicted against measured"
set border 3
unset grid
set grid xtics ytics linecolor "#e4e4e4" linetype 1 linewidth 1
set key bottom right inside vertical samplen 1.2 width 0 textcolor "#333333" noreverse Right
set size ratio 1
wide = top > 30 * bottom
low = wide ? 0.7 * bottom : 0
high = (wide ? 1.3 : 1.12) * top
set xrange [low:high]
set yrange [low:high]
if (wide) {
    set logscale xy
}
set ytics nomirror scale 0.6 textcolor rgb INK
set xtics autofreq
set ytics autofreq
set xlabel "measured (ms)" offset 0, 0.3
set ylabel "predicted (ms)" offset 1, 0
set style fill transparent solid 0.5 noborder
set samples 200
plot \
    '+' using 1:(0.9 * $1):(1.1 * $1) with filledcurves linecolor rgb "#d5deeb" title "within 10 %", \
    x with lines linecolor rgb MUTED linewidth 1 dashtype 2 title "equal", \
    data using 3:2 with points pointtype 7 pointsize 1.4 linecolor rgb PREDICTED notitle
unset multiplot
