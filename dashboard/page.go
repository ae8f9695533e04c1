package dashboard

// This file draws the pages, from views. The texts of a view come from everywhere:
// names, identities, notes, errors.

// page writes a whole page.
func (w *writer) page(v *view) {
	w.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>% – redlatch</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="style.css">
<script src="app.js" defer></script>
<noscript><meta http-equiv="refresh" content="%"></noscript>
</head>
<body data-events="%">
<a class="skip" href="#content">To the content</a>
<header>
<a class="brand" href="./"><svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><path class="shackle" d="M10 14v-4a6 6 0 0 1 12 0v4"/><rect class="body" x="6" y="14" width="20" height="14" rx="4"/><circle class="hole" cx="16" cy="21" r="2.5"/></svg> redlatch</a>
`, v.Title, v.Refresh, v.Events)
	w.putIf(`<span class="server">%</span>`, v.Server)
	w.put(`
<p class="status"><span role="status" aria-live="polite"><span id="state">`)
	w.state(v)
	w.put(`</span><span id="link" hidden></span></span> <span id="time">`)
	w.time(v)
	w.put(`</span></p>
</header>
<main id="content" tabindex="-1">
<div id="notes">`)
	w.notes(v)
	w.put(`</div>
`)
	if v.List != nil {
		w.put(`<h1 class="hidden">Locks</h1>
<form method="get" action="./" role="search">
<label for="filter">Filter by name or holder</label>
<input id="filter" name="filter" type="search" aria-keyshortcuts="/" value="%" placeholder="orders:*" autocomplete="off" autocapitalize="off" spellcheck="false">
<input type="hidden" name="sort" value="%">
<button>Filter</button>
</form>
`, v.Filter, v.Sort)
	}
	w.put(`<div id="main">`)
	w.main(v)
	w.put(`</div>
</main>
<footer>
<p>Looks again % after each look. What happens between two looks is not seen. This page only shows: to release a lock by force see <code>redlatch release</code>.</p>
</footer>
</body>
</html>
`, v.Interval)
}

// parts are those of a page that change, by their ids.
var parts = map[string]func(*writer, *view){
	"state": (*writer).state,
	"time":  (*writer).time,
	"notes": (*writer).notes,
	"main":  (*writer).main,
}

func (w *writer) state(v *view) { w.put(`<span class="state %">%</span>`, v.State, v.StateText) }

func (w *writer) time(v *view) {
	if v.At != "" {
		w.put(`as of <time datetime="%">%</time>`, v.AtFull, v.At)
	}
}

func (w *writer) notes(v *view) {
	for i := range v.Notes {
		w.note(&v.Notes[i])
	}
}

func (w *writer) note(n *note) {
	w.put(`<section class="note%">
<p>%</p>
`, when(len(n.Waits) > 0, " deadlock"), n.Text)
	if len(n.Waits) > 0 {
		w.put(`<ol>`)
		for i := range n.Waits {
			x := &n.Waits[i]
			w.put(`
<li><b>%</b> has waited % for <a href="%">%</a>`, x.Who, x.For, x.Link, x.Name)
			w.putIf(` at <code>%</code>`, x.Site)
			w.put(`; <b>%</b> holds it`, x.Holder)
			w.putIf(`, from <code>%</code>`, x.HolderSite)
			w.put(`</li>`)
		}
		w.put(`
</ol>`)
	}
	w.put(`
</section>`)
}

func (w *writer) main(v *view) {
	if v.List != nil {
		w.list(v.List)
	} else {
		w.lock(v.Lock)
	}
}

func (w *writer) list(l *list) {
	if !l.Known {
		w.put(`<p class="said">Nothing is known of the locks yet.</p>`)
		return
	}
	w.put(`<ul class="tiles">
<li><b>%</b> listed`, l.All)
	w.putIf(` like <code>%</code>`, l.Pattern)
	w.put(`</li>
<li><b>%</b> waiting</li>
<li%><b>%</b> lost</li>
</ul>
`, l.Waiting, when(l.Lost > 0, ` class="bad"`), l.Lost)
	switch {
	case l.Filter != "":
		w.put(`<p class="said">% <code>%</code>. <a href="%">Show all</a></p>`, matches(len(l.Rows)), l.Filter, l.Without)
	case len(l.Rows) == 0:
		w.put(`<p class="said">No lock is held.</p>`)
	}
	if len(l.Rows) > 0 {
		w.table(l)
	}
}

func matches(rows int) string {
	if rows == 0 {
		return "Nothing matches"
	}
	return "Only what matches"
}

func (w *writer) table(l *list) {
	w.put(`<table class="locks" role="table">
<caption class="hidden">Locks and synchronizers, with links to sort them</caption>
<thead role="rowgroup"><tr role="row">`)
	for _, c := range l.Columns {
		w.put(`
<th scope="col" role="columnheader"`)
		w.putIf(` class="%"`, c.Class)
		if c.Sorted {
			w.put(` aria-sort="%"`, when(c.Class != "", "descending")+when(c.Class == "", "ascending"))
		}
		if c.Link != "" {
			w.put(`><a href="%">%<span class="hidden">: sort, %</span></a></th>`, c.Link, c.Title, c.Explained)
		} else {
			w.put(`>%</th>`, c.Title)
		}
	}
	w.put(`
</tr></thead>
<tbody role="rowgroup">`)
	for i := range l.Rows {
		r := &l.Rows[i]
		w.put(`
<tr id="%" role="row"%>
<th scope="row" role="rowheader"><a href="%">%</a>`, r.ID, when(r.Deadlock, ` class="deadlock"`), r.Link, r.Name)
		w.putIf(` <span class="kind">%</span>`, r.Kind)
		w.put(`%</th>
<td role="cell" class="who%" data-label="Holder">%</td>
<td role="cell" class="n" data-label="Held for">%</td>
<td role="cell" class="n" data-label="Waiting">%</td>
<td role="cell" class="n" data-label="Longest wait">%</td>
<td role="cell" class="n%" data-label="Lost">%</td>
</tr>`, when(r.Deadlock, ` <span class="kind bad">possible deadlock</span>`), when(r.Free, " faint"), r.Holder, r.For, r.Waiters, r.Longest,
			when(r.Lost > 0, " bad"), r.Lost)
	}
	w.put(`
</tbody>
</table>
`)
	if l.Left > 0 {
		w.put(`<p class="said">% more are not shown: the filter finds them.</p>`, l.Left)
	}
}

func (w *writer) lock(l *lock) {
	w.put(`<nav aria-label="Back"><a href="./">All locks</a></nav>
<h1>%</h1>
`, l.Name)
	w.putIf(`<section class="note"><p>%</p></section>`, l.Error)
	switch {
	case l.Known:
		w.known(l)
	case l.Error == "":
		w.put(`<p class="said">Nothing is known of it yet.</p>`)
	}
	if len(l.Seen) > 0 {
		w.put(`<section aria-labelledby="seen"><h2 id="seen">Seen while somebody looked</h2>
<ul class="seen">`)
		for _, s := range l.Seen {
			w.put(`<li><time datetime="%">%</time> <span>%</span></li>`, s.AtFull, s.At, s.Text)
		}
		w.put(`</ul></section>`)
	}
}

// known draws what is known of a lock.
func (w *writer) known(l *lock) {
	w.put(`<p class="standing%">%%</p>
`, when(l.Held, " held"), l.State,
		when(!l.Exists, ` <span class="faint">Nothing is stored under this name. If it is a lock, nobody has it.</span>`))
	for i := range l.Deadlocks {
		w.note(&l.Deadlocks[i])
	}
	w.put(`<dl class="tiles">`)
	for _, f := range l.Facts {
		w.put(`<div><dt>%</dt><dd>%</dd></div>`, f.Word, f.Value)
	}
	w.put(`</dl>
<div class="columns">
`)
	if l.Drawing != nil {
		w.drawing(l.Drawing)
	}
	if len(l.Times) > 0 {
		w.put(`<section aria-labelledby="times"><h2 id="times">At each look</h2>
`)
		for _, s := range l.Times {
			w.sparkline(s)
		}
		w.put(`
<p class="faint">A bar for each look, the latest on the right; a dashed line where nobody looked for a while. What happens between two looks is not known.</p></section>`)
	}
	w.put(`
</div>
`)
	holders := markup("Permits taken")
	if l.IsLock {
		holders = "Holders"
	}
	w.callers("holders", holders, l.Holders)
	if len(l.Waiters) > 0 || l.Others != "" || l.Silent != "" {
		w.put(`<section aria-labelledby="waiters"><h2 id="waiters">Waiters</h2>`)
		w.each(l.Waiters)
		w.putIf(`<p class="faint">%</p>`, l.Others)
		w.putIf(`<p class="faint">%.</p>`, l.Silent)
		w.put(`</section>
`)
	}
	w.callers("claims", "Claimed, and not stored", l.Claims)
	w.callers("losses", "Lost within an hour", l.Lost)
}

// callers draws some that have something in common, if there are any.
func (w *writer) callers(id, title markup, all []caller) {
	if len(all) == 0 {
		return
	}
	w.put(`<section aria-labelledby="%"><h2 id="%">%</h2>`, id, id, title)
	w.each(all)
	w.put(`</section>
`)
}

func (w *writer) each(all []caller) {
	if len(all) == 0 {
		return
	}
	w.put(`
<ul class="callers">`)
	for i := range all {
		c := &all[i]
		w.put(`
<li><p class="who">%</p>
<dl>
`, c.Who)
		w.putIf(`<div><dt>For</dt><dd>%</dd></div>`, c.For)
		w.putIf(`<div><dt>Ago</dt><dd>%</dd></div>`, c.Ago)
		w.putIf(`<div><dt>Lease</dt><dd>%</dd></div>`, c.Lease)
		w.putIf(`<div><dt>What</dt><dd>%</dd></div>`, c.What)
		w.putIf(`<div><dt>Where</dt><dd><code>%</code></dd></div>`, c.Site)
		w.putIf(`<div><dt>Note</dt><dd>%</dd></div>`, c.Note)
		w.putIf(`<div><dt>In the queue until</dt><dd>%</dd></div>`, c.Until)
		for j, o := range c.Also {
			w.put(`%<a href="%">%</a>`, when(j == 0, `<div><dt>Holds meanwhile</dt><dd>`)+when(j > 0, ", "), o.Link, o.Name)
		}
		w.put(`%`, when(len(c.Also) > 0, `</dd></div>`))
		w.putIf(`<div><dt>Owner</dt><dd><code>%</code></dd></div>`, c.Owner)
		w.put(`
</dl></li>`)
	}
	w.put(`
</ul>`)
}

func (w *writer) drawing(d *drawing) {
	w.put(`<section aria-labelledby="edges"><h2 id="edges">Who has it, and who waits</h2>
<div class="card"><svg class="drawing" viewBox="0 0 % %" role="img" aria-labelledby="edges-title edges-desc">
<title id="edges-title">Holders and waiters</title><desc id="edges-desc">%</desc>
`, d.Width, d.Height, d.Desc)
	for _, e := range d.Edges {
		w.put(`<g class="%"><path class="line" d="%"/><path class="head" d="%"/></g>
`, e.Class, e.Path, e.Head)
	}
	for _, n := range d.Nodes {
		w.put(`<svg x="%" y="%" width="%" height="%" class="node %"><rect x="1" y="1" width="146" height="38" rx="8"/><svg x="10" width="130"><text y="%">%</text>`,
			n.X, n.Y, n.Width, n.Height, n.Class, when(n.Small != "", "17")+when(n.Small == "", "24"), n.Text)
		w.putIf(`<text class="small" y="31">%</text>`, n.Small)
		w.put(`</svg></svg>
`)
	}
	w.put(`</svg>
<p class="faint legend"><span class="holds">has</span> <span class="waits">waits for</span></p></div></section>`)
}

func (w *writer) sparkline(s *sparkline) {
	w.put(`<figure>
<figcaption><b>%</b> <span>%</span></figcaption>
<svg class="sparkline" viewBox="0 0 % %" preserveAspectRatio="none" role="img" aria-labelledby="%-title %-desc">
<title id="%-title">%, at each look</title><desc id="%-desc">%</desc>
`, s.Title, s.Text, s.Width, s.Height, s.ID, s.ID, s.ID, s.Title, s.ID, s.Desc)
	for _, x := range s.Gaps {
		w.put(`<line x1="%" x2="%" y1="0" y2="%"/>`, x, x, s.Height)
	}
	for _, b := range s.Bars {
		w.put(`<rect x="%" y="%" width="3" height="%"/>`, b.X, b.Y, b.Height)
	}
	w.put(`
</svg></figure>`)
}
