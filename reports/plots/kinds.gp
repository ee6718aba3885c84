# Time and error by kind of operation, the longest first.
# gnuplot -c kinds.gp DATA OUT png|svg
data = ARG1
here = ARG0[1:strlen(ARG0) - strlen("kinds.gp")]

stats data using 2 name "P" nooutput
stats data using 3 name "M" nooutput
stats data using 4 name "E" nooutput
stats data using 5 name "A" nooutput
kinds = P_records
top = P_max > M_max ? P_max : M_max
call here."style.gp" ARG2 ARG3 "1400" sprintf("%d", 170 + 44 * kinds)

set multiplot
set border 1
unset grid
set grid xtics linecolor "#e4e4e4" linetype 1 linewidth 1
set yrange [kinds - 0.4:-0.6]
set ytics scale 0 noenhanced
set bmargin 5
set tmargin 3
set style fill solid 1.0 noborder

set lmargin at screen 0.16
set rmargin at screen 0.56
set title "Time by kind of operation (ms a step, mean over ranks)"
set xrange [0:1.06 * top]
set key at screen 0.36, screen 0.025 center bottom horizontal samplen 1.2 width 3 textcolor "#333333" reverse Left
plot \
    data using ($2 / 2):($0 - 0.18):(0):2:($0 - 0.34):($0 - 0.02) \
        with boxxyerror linecolor rgb PREDICTED title "predicted", \
    data using ($3 / 2):($0 + 0.18):(0):3:($0 + 0.02):($0 + 0.34) \
        with boxxyerror linecolor rgb MEASURED title "measured", \
    data using (0):0:ytic(1) with points pointtype -1 notitle

set lmargin at screen 0.60
set rmargin at screen 0.975
set title "Error by kind (%)"
# Statistics of a column without any number are not defined.
reach = 10
if (exists("E_max")) {
    reach = E_max > reach ? E_max : reach
    reach = -E_min > reach ? -E_min : reach
}
if (exists("A_max")) {
    reach = A_max > reach ? A_max : reach
}
reach = reach > 200 ? 200 : reach
set xrange [-1.12 * reach:1.12 * reach]
set format y ""
set arrow 1 from 0, graph 0 to 0, graph 1 nohead linecolor "#8c8c8c" linewidth 1 front
set key at screen 0.79, screen 0.025
plot \
    data using ($4 / 2):0:(0):4:($0 - 0.24):($0 + 0.24) \
        with boxxyerror linecolor rgb "#b9c4d3" title "total", \
    data using 5:0 with points pointtype 7 pointsize 1.2 linecolor rgb "#a33b3b" \
        title "median |error|"
unset multiplot
