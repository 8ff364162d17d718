// The pages work without this script. It swaps what has changed, moves the slider, keeps drafts, and knows keys.
"use strict";
(() => {
  const store = { get: k => { try { return localStorage.getItem("tasq-" + k); } catch { return null; } },
    set: (k, v) => { try { v === null ? localStorage.removeItem("tasq-" + k) : localStorage.setItem("tasq-" + k, v); } catch { /* private mode */ } } };
  const root = document.documentElement;
  root.classList.add("js");
  if (store.get("theme")) root.dataset.theme = store.get("theme");
  const $ = id => document.getElementById(id);

  // Times: relative, with the local and the UTC time where one points at them.
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const units = [["d", 86400, "day"], ["h", 3600, "hour"], ["m", 60, "minute"], ["s", 1, "second"]];
  let skew = 0; // how far the clock of this machine is behind that of the server
  function tell(t) {
    const then = new Date(t.dateTime), s = Math.round((then - Date.now() - skew) / 1000), at = local.format(then);
    const [short, size, unit] = units.find(u => Math.abs(s) >= u[1]) || units[3], ago = relative.format(Math.trunc(s / size), unit);
    t.textContent = t.className === "sofar" ? Math.trunc(Math.max(0, -s) / size) + short + " so far" : t.className === "dated" ? `${at} (${ago})` : store.get("times") === "local" ? at : ago;
    t.title = at + " · " + t.dateTime;
  }
  const times = within => within.querySelectorAll("time").forEach(tell);

  // Parts: what is typed into, ticked or open stays.
  const busy = el => { const a = document.activeElement; return el.contains(a) && /^(INPUT|TEXTAREA|SELECT)$/.test(a.tagName) && !/range|checkbox|radio/.test(a.type); };
  function swap(parts) {
    for (const [id, html] of Object.entries(parts)) {
      const old = $("part-" + id);
      if (old && !busy(old) && !(id === "rows" && news(old, html))) put(old, html);
    }
  }
  function put(old, html) {
    const ticks = [...old.querySelectorAll("input:checked")].map(i => i.value);
    const open = [...old.querySelectorAll("details")].map(d => d.open);
    const scrolls = [...old.querySelectorAll(".netbox,.scroll")].map(e => e.scrollLeft);
    const focus = old.contains(document.activeElement) && place(old, document.activeElement), chosen = old.querySelector("tr.at");
    old.innerHTML = html;
    old.querySelectorAll("details").forEach((d, i) => { d.open = open[i] || d.open; });
    old.querySelectorAll(".netbox,.scroll").forEach((e, i) => { e.scrollLeft = scrolls[i] || 0; });
    if (focus) { const e = focus.path.reduce((n, i) => n && n.children[i], focus.name ? named(old, focus.name) : old); e?.focus({ preventScroll: true }); }
    if (chosen) { const tr = named(old, name(chosen)); tr?.classList.add("at"); }
    old.querySelectorAll("input[name=ids]").forEach(i => { i.checked = ticks.includes(i.value); });
    arrange(old);
  }
  // New rows of a list wait behind a button, so that the rows that are read do not move; those are changed in their place.
  function news(old, html) {
    const all = document.createElement("template"), rows = top => [...top.querySelectorAll("tr[id]")], head = top => (top.querySelector("thead") || top).textContent;
    all.innerHTML = html;
    const known = rows(old), fresh = rows(all.content).filter(tr => !known.some(k => k.id === tr.id));
    if (!known.length || !fresh.length || head(old) !== head(all.content)) return false;
    for (const tr of known) {
      const now = all.content.getElementById(tr.id), tick = tr.querySelector("input:checked");
      if (!now || tr.contains(document.activeElement)) continue;
      tr.innerHTML = now.innerHTML;
      if (tick && tr.querySelector("input")) tr.querySelector("input").checked = true;
    }
    let b = old.querySelector(".news");
    if (!b) { b = document.createElement("button"); b.type = "button"; b.className = "news small"; old.prepend(b); }
    b.textContent = fresh.length + " new, show";
    b.onclick = () => put(old, html);
    times(old);
    return true;
  }
  // A row is known by its first link, and what is in it by its place there.
  const name = tr => tr.querySelector("a")?.getAttribute("href");
  const named = (top, n) => [...top.querySelectorAll("tr")].find(tr => name(tr) === n);
  function place(top, e) {
    const tr = e.closest("tr"), n = tr && top.contains(tr) && name(tr), from = n ? tr : top, p = [];
    for (; e !== from; e = e.parentElement) p.unshift([...e.parentElement.children].indexOf(e));
    return { name: n, path: p };
  }

  function arrange(within) {
    times(within);
    within.querySelectorAll(".copy").forEach(b => { b.hidden = !navigator.clipboard;
      b.onclick = () => navigator.clipboard.writeText(b.dataset.copy).then(() => { b.textContent = "copied"; }); });
    within.querySelectorAll("th.pick").forEach(th => {
      const all = document.createElement("input"), boxes = () => [...th.closest("table").querySelectorAll("[name=ids]")];
      all.type = "checkbox"; all.setAttribute("aria-label", "Tick all rows");
      all.onchange = () => boxes().forEach(i => { i.checked = all.checked; });
      th.append(all);
    });
    within.querySelectorAll("[name=zoom]").forEach(i => {
      if (i.value === store.get("zoom")) i.checked = true;
      i.onchange = () => store.set("zoom", i.value);
    });
    const slider = within.querySelector("#entry");
    if (slider) slide(slider);
  }

  // The slider asks for the parts of a past state, the last one wanted only.
  let asked = null, wanted = null;
  function slide(slider) {
    slider.oninput = () => { wanted = slider.value; show(); };
    slider.form.onsubmit = e => e.preventDefault();
  }
  async function show() {
    if (asked !== null || wanted === null) return;
    asked = wanted; wanted = null;
    const u = new URL(location.href);
    const slider = $("entry"), part = slider && slider.form.elements.part, last = slider && asked === slider.max && !slider.dataset.later;
    for (const p of ["at", "entry", "part"]) u.searchParams.delete(p);
    if (!last) { u.searchParams.set("entry", asked); if (part) u.searchParams.set("part", part.value); }
    try {
      const r = await fetch(u, { headers: { Accept: "application/json" } });
      if (r.ok) { past = !last; swap(await r.json()); history.replaceState(null, "", u); const s = $("entry"); if (s && wanted === null) s.focus({ preventScroll: true }); }
    } finally { asked = null; if (wanted !== null) show(); }
  }
  let past = /[?&](at|entry|part)=/.test(location.search);

  // Live: one stream, closed while the page is not seen or paused. A browser has six connections to an HTTP/1.1 server: once four
  // other pages have opened a stream later, this one ends its own, until it gets the focus.
  let stream = null, paused = false;
  const me = Math.random(), later = new Set(), tabs = new BroadcastChannel("tasq");
  tabs.onmessage = e => { if (stream && later.add(e.data).size > 3) { close(); live("paused", "paused: live in other windows"); } };
  function live(state, text) { const b = $("live"); if (b) { b.hidden = false; b.dataset.state = state; b.setAttribute("aria-pressed", String(paused)); $("livetext").textContent = text; } }
  function listen() {
    const url = document.body.dataset.stream;
    if (!url || stream || paused || document.hidden || !window.EventSource) return;
    stream = new EventSource(url);
    later.clear(); tabs.postMessage(me);
    stream.onopen = () => live("on", "live");
    stream.addEventListener("parts", e => { live("on", "live"); if (!past) swap(JSON.parse(e.data)); });
    stream.onerror = () => { live("lost", "not live since " + new Date().toLocaleTimeString());
      if (stream && stream.readyState === EventSource.CLOSED) { close(); setTimeout(listen, 5000); } };
  }
  function close() { stream?.close(); stream = null; }
  function pause() { paused = !!stream; if (paused) { close(); live("paused", "paused"); } else listen(); }

  // Drafts of forms survive a reload, an error, and a server that stops: they end at the page that says what was done.
  function drafts() {
    if (document.querySelector(".alert.good")) store.set(store.get("sent"), null);
    for (const f of document.querySelectorAll("form[data-draft]")) {
      const key = "draft-" + f.dataset.draft, kept = JSON.parse(store.get(key) || "{}");
      for (const e of f.elements) if (kept[e.name] && e.type !== "hidden" && !e.value) { e.value = kept[e.name]; const d = e.closest("details"); if (d) d.open = true; }
      f.oninput = () => { const d = {}; for (const e of f.elements) if (e.name && e.type !== "hidden") d[e.name] = e.value; store.set(key, JSON.stringify(d)); };
      f.onsubmit = () => store.set("sent", key);
    }
  }

  // Keys.
  const pages = { o: "", w: "workflows", c: "cases", i: "items", j: "jobs", e: "events", x: "incidents", d: "doctor", a: "audit", s: "schedules", l: "limits", t: "stats" };
  let before = "", row = -1;
  function move(by) {
    const rows = [...document.querySelectorAll("main tbody tr")], chosen = document.querySelector("tr.at");
    if (!rows.length) return;
    if (chosen) { chosen.classList.remove("at"); row = rows.indexOf(chosen); }
    row = Math.max(0, Math.min(rows.length - 1, row + by));
    rows[row].classList.add("at"); rows[row].scrollIntoView({ block: "nearest" });
  }
  const step = rel => document.querySelector(`.slider a[rel=${rel}]`)?.click();
  const keys = { "/": () => $("q").focus(), "?": () => go("help"), t: theme, p: pause, j: () => move(1), k: () => move(-1),
    x: () => document.querySelector("tr.at input")?.click(),
    Enter: () => document.querySelector("tr.at a")?.click(), "[": () => step("prev"), "]": () => step("next"), ",": () => step("fail"), ".": () => step("nextfail") };
  const go = to => { location.href = document.body.dataset.home + to; };
  function key(e) {
    if (e.key === "Escape") { document.querySelectorAll("details[open]").forEach(d => { d.open = false; }); document.activeElement.blur(); return; }
    if (store.get("keys") === "off" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT|BUTTON|A|SUMMARY)$/.test(e.target.tagName) && e.target.type !== "checkbox" && (e.key === "Enter" || e.target.tagName !== "A" && e.target.tagName !== "BUTTON" && e.target.tagName !== "SUMMARY")) return;
    const second = before === "g" && e.key in pages;
    before = e.key;
    if (second) go(pages[e.key]);
    else if (e.key in keys) { e.preventDefault(); keys[e.key](); }
  }
  function theme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark"; store.set("theme", root.dataset.theme);
  }

  document.addEventListener("DOMContentLoaded", () => {
    // On a narrow screen the navigation is one line that scrolls: the entry of this page is to be seen.
    const here = document.querySelector(".top nav [aria-current]");
    if (here) here.closest("nav").scrollLeft = here.offsetLeft - 90;
    skew = new Date(document.body.dataset.now) - Date.now();
    arrange(document);
    drafts();
    const zone = $("zone"), toggle = document.createElement("button");
    toggle.type = "button"; toggle.className = "small";
    const shown = () => { toggle.textContent = store.get("times") || "relative"; times(document); };
    toggle.onclick = () => { store.set("times", store.get("times") ? null : "local"); shown(); };
    shown(); zone.replaceChildren(toggle, ", and UTC on hover");
    if ($("theme")) { $("theme").hidden = false; $("theme").onclick = theme; }
    if ($("live")) { $("live").onclick = pause; listen(); }
    const k = $("keys");
    if (k) { const word = () => { k.textContent = store.get("keys") === "off" ? "Switch the keys on" : "Switch the keys off"; };
      k.hidden = false; word(); k.onclick = () => { store.set("keys", store.get("keys") === "off" ? null : "off"); word(); }; }
    document.addEventListener("keydown", key);
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else listen(); });
    addEventListener("focus", listen);
    setInterval(() => times(document), 10000);
  });
})();
