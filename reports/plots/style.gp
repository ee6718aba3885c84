# What all figures share: terminal, colours, frame. Called with: OUT, format, width, height (pixels).
out = ARG1
if (ARG2 eq "svg") {
    set terminal svg size ARG3 + 0, ARG4 + 0 font "DejaVu Sans,13" background "#ffffff" enhanced
} else {
    set terminal pngcairo size 2 * ARG3, 2 * ARG4 font "DejaVu Sans,13" fontscale 2 linewidth 2 \
        pointscale 2 background "#ffffff" enhanced
}
set output out
set encoding utf8
set border 3 linecolor "#8c8c8c" linewidth 1
set tics nomirror out textcolor "#333333" scale 0.6
set grid ytics linecolor "#e4e4e4" linetype 1 linewidth 1
set title textcolor "#222222" font ",15" offset 0, 0.2
set xlabel textcolor "#333333"
set ylabel textcolor "#333333"
PREDICTED = "#3b6fb6"
MEASURED = "#e08a2e"
INK = "#222222"
MUTED = "#767676"
