package svg

// style gives the colors by names, so that a page may set others, and again for a dark page. Nothing relies on it: each
// shape has the light colors as attributes too.
const style = `
.tasq-net{--bg:#ffffff;--ink:#1f2328;--soft:#59636e;--line:#57606a;--box:#ffffff;--grey:#e7ebef;--strip:#f3f5f7;` +
	`--circle:#ffffff;--start:#1a7f37;--end:#cf222e;--token:#1f2328;--busy:#bf8700;--busybox:#fff8c5;` +
	`--r0:#d1242f;--r1:#0969da;--r2:#8250df;--r3:#1a7f37;--r4:#bc4c00;--r5:#0e7a8a}
@media (prefers-color-scheme:dark){.tasq-net{--bg:#0d1117;--ink:#e6edf3;--soft:#9198a1;--line:#8b949e;--box:#161b22;` +
	`--grey:#2b323b;--strip:#21262d;--circle:#161b22;--start:#3fb950;--end:#ff7b72;--token:#e6edf3;--busy:#d29922;` +
	`--busybox:#3b2e0a;--r0:#ff7b72;--r1:#58a6ff;--r2:#bc8cff;--r3:#3fb950;--r4:#f0883e;--r5:#39c5cf}}
.tasq-net .bg{fill:var(--bg)}
.tasq-net text{fill:var(--ink)}
.tasq-net .soft{fill:var(--soft)}
.tasq-net .flow{stroke:var(--line)}
.tasq-net .head{fill:var(--line)}
.tasq-net .box{fill:var(--box);stroke:var(--line)}
.tasq-net .grey{fill:var(--grey);stroke:var(--line)}
.tasq-net .plate{fill:var(--grey)}
.tasq-net .strip{fill:var(--strip)}
.tasq-net .gate{fill:var(--line)}
.tasq-net .circle{fill:var(--circle);stroke:var(--line)}
.tasq-net .start{stroke:var(--start)}
.tasq-net .startmark{fill:var(--start)}
.tasq-net .end{stroke:var(--end)}
.tasq-net .endmark{fill:var(--end)}
.tasq-net .token{fill:var(--token)}
.tasq-net .busy{fill:var(--busybox);stroke:var(--busy)}
.tasq-net .busymark{fill:var(--busy)}
.tasq-net .inner{fill:none}
.tasq-net .badge rect{fill:var(--ink)}
.tasq-net .badge text{fill:var(--bg)}
.tasq-net .edge0{stroke:var(--r0)}.tasq-net .tint0{fill:var(--r0)}
.tasq-net .edge1{stroke:var(--r1)}.tasq-net .tint1{fill:var(--r1)}
.tasq-net .edge2{stroke:var(--r2)}.tasq-net .tint2{fill:var(--r2)}
.tasq-net .edge3{stroke:var(--r3)}.tasq-net .tint3{fill:var(--r3)}
.tasq-net .edge4{stroke:var(--r4)}.tasq-net .tint4{fill:var(--r4)}
.tasq-net .edge5{stroke:var(--r5)}.tasq-net .tint5{fill:var(--r5)}
`

// The colors of [style] on a light page, for attributes.
const (
	bgColor    = "#ffffff"
	inkColor   = "#1f2328"
	softColor  = "#59636e"
	lineColor  = "#57606a"
	greyColor  = "#e7ebef"
	stripColor = "#f3f5f7"
	startColor = "#1a7f37"
	endColor   = "#cf222e"
	busyColor  = "#bf8700"
	busyBox    = "#fff8c5"
)

// tints are the colors of regions, one after the other.
var tints = [...]string{"#d1242f", "#0969da", "#8250df", "#1a7f37", "#bc4c00", "#0e7a8a"}
