# Traces one above the other, a lane a stream, coloured by family of operation kinds.
# gnuplot -c timelines.gp DATA OUT png|svg
data = ARG1
here = ARG0[1:strlen(ARG0) - strlen("timelines.gp")]

FAMILIES = 8
array NAME[FAMILIES] = ["matrix product", "attention", "norm, activation, dropout", \
                        "embedding, loss", "optimizer", "collective", "copy", "host"]
array COLOUR[FAMILIES] = ["#3b6fb6", "#7a5aa6", "#6fb1d6", "#9c755f", "#4e9a5b", "#e08a2e", \
                          "#d1ba3c", "#a3a3a3"]
array PRESENT[FAMILIES]

stats data index 1 using 1 name "LANES" nooutput
stats data index 0 using 1 name "HEADS" nooutput
stats data index 2 using 1 name "START" nooutput
stats data index 2 using 2 name "END" nooutput
do for [f = 1:FAMILIES] {
    stats data index 2 using ($5 == f - 1 ? 1 : 0) name "FOUND" nooutput
    PRESENT[f] = int(FOUND_sum)
}
low = START_min
high = END_max
span = high > low ? high - low : 1
rows = LANES_records + 1.5 * HEADS_records

call here."style.gp" ARG2 ARG3 "1400" sprintf("%d", 135 + 38 * rows)
set xrange [low - 0.004 * span:high + 0.004 * span]
set yrange [LANES_min - 0.7:0.7]
set border 1
unset grid
set grid xtics linecolor "#e4e4e4" linetype 1 linewidth 1
set tics nomirror
set ytics scale 0 noenhanced
set xlabel "ms since the step before ended" offset 0, 0.4
set key outside below center horizontal maxrows 2 height 0.8 samplen 1.2 spacing 1.3 width 1 \
    textcolor "#333333" reverse Left
# A white edge parts neighbours of one colour; among many small boxes it would hide them.
if (START_records < 400) {
    set style fill solid 1.0 border linecolor "#ffffff"
} else {
    set style fill solid 1.0 noborder
}
set lmargin 16
set rmargin 3
set arrow 1 from 0, graph 0 to 0, graph 1 nohead linecolor "#bbbbbb" dashtype 2 back

# A name fits where its box is wider than its letters: about 0.56 % of the width a letter.
fits(a, b, s) = (b - a) / span > 0.0056 * strlen(s) + 0.004
dark(f) = (f == 0 || f == 1 || f == 3 || f == 4)

plot \
    for [f = 1:FAMILIES] data index 2 using \
        ($5 == f - 1 ? ($1 + $2) / 2 : NaN):(($3 + $4) / 2):1:2:3:4 \
        with boxxyerror linecolor rgb COLOUR[f] notitle, \
    for [f = 1:FAMILIES] data index 2 using (NaN):1 \
        with boxes linecolor rgb COLOUR[f] title (PRESENT[f] > 0 ? NAME[f] : ""), \
    data index 2 using (fits($1, $2, strcol(6)) && dark($5) ? ($1 + $2) / 2 : NaN):(($3 + $4) / 2):6 \
        with labels font ",9" textcolor "#ffffff" noenhanced notitle, \
    data index 2 using (fits($1, $2, strcol(6)) && !dark($5) ? ($1 + $2) / 2 : NaN):(($3 + $4) / 2):6 \
        with labels font ",9" textcolor "#222222" noenhanced notitle, \
    data index 1 using (low):1:ytic(2) with points pointtype -1 notitle, \
    data index 0 using (low):1:2 with labels left offset 0, -0.2 font ",14" textcolor "#222222" \
        noenhanced notitle
