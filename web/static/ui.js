// Keys, refreshing while a page is looked at, and the zone of the browser. Pages work without it.
(() => {
  "use strict";
  const base = document.body.dataset.base;
  // The first link of each row.
  const row = (link) => link?.closest("tr, .part, .fold, .logs li");
  const firsts = (selector) =>
    [...document.querySelectorAll(selector)].filter((link, at, all) => row(link) !== row(all[at - 1]));
  const rows = () => firsts("main tr.row a, main .part a, main .fold > .to, .logs li > a");
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");
  let after = "";

  // The server draws times in the zone that it is told. Intl is slow to start.
  const zone = globalThis.Temporal?.Now.timeZoneId() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const isTold = () => document.cookie.split("; ").includes(`hs_zone=${zone}`);
  if (document.body.dataset.zone !== zone && !isTold() && /^[A-Za-z0-9/_+-]{1,64}$/.test(zone)) {
    document.cookie = `hs_zone=${zone}; Path=${base}; SameSite=Lax; Max-Age=31536000`;
    if (isTold() && document.querySelector("main time")) location.reload();
  }

  // Parts that may change ask again while they are seen and nothing in them has the focus.
  setInterval(() => {
    if (document.hidden || document.readyState !== "complete") return;
    for (const part of document.querySelectorAll("[data-live]")) {
      if (!part.contains(document.activeElement)) htmx.trigger(part, "refresh");
    }
  }, 6000);

  // Lines of a log that the address names are marked. Those that are not on the page of the last lines are opened.
  const lines = () => document.querySelector("ol.log");
  const named = () => (location.hash.match(/^#L\d+(-L\d+)?$/)?.[0].match(/\d+/g) ?? []).map(Number);
  const mark = (move) => {
    const [from, to = from] = named();
    if (!from || !lines()) return;
    lines().dataset.marked = "";
    for (const line of lines().children) {
      const number = Number(line.id.slice(1));
      line.classList.toggle("marked", number >= from && number <= to);
    }
    const first = lines().querySelector(".marked");
    if (move) first?.scrollIntoView({ block: "center" });
    const asked = location.search;
    if (!first && !/\bfrom=/.test(asked)) location.replace(`${asked || "?"}&from=${Math.max(1, from - 300)}${location.hash}`);
  };
  addEventListener("hashchange", () => mark(true));
  addEventListener("click", (event) => {
    const link = event.target.closest(".log li > a:first-child");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [before] = named();
    const number = Number(link.parentElement.id.slice(1));
    const names = event.shiftKey && before ? [before, number].sort((a, b) => a - b) : [number];
    link.hash = names.map((it) => `L${it}`).join("-");
    history.replaceState(null, "", link.href);
    mark(false);
  });
  mark(true);
  // Lines that come leave those that are read where they are. At the end of the log they are followed.
  let held = [];
  const top = (part) => part?.getBoundingClientRect().top;
  addEventListener("htmx:beforeSwap", (event) => {
    // The answer may come when a link has got the focus or is being clicked: it would take that link away.
    event.detail.shouldSwap &&= !event.detail.target.matches("[data-live]:is(:focus-within, :active)");
    if (!lines()) return;
    const end = document.getElementById("end");
    const isEnd = scrollY > 0 && top(end) < innerHeight;
    const part = isEnd ? end : [...lines().children].find((line) => top(line) > 48);
    held = [part?.id, top(part)];
  });
  addEventListener("htmx:afterSwap", () => {
    mark(false);
    const [id, at] = held;
    const part = document.getElementById(id);
    if (part) scrollBy(0, top(part) - at);
    held = [];
  });

  // What is done without a new page is said to readers of screens.
  const say = (text) => {
    document.getElementById("said").textContent = text;
  };
  const move = (by) => {
    const links = rows();
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at < 0 && by < 0 ? 0 : at + by))]?.focus();
  };
  const record = (link) => {
    const [, path] = link.getAttribute("href").split(`${base}/run/`);
    return path && decodeURIComponent(path.split("?")[0]);
  };
  // Runs that are selected, in the order of the page.
  const picked = () => [...document.querySelectorAll("tr.picked")].map((row) => record(row.querySelector("a")));
  const pick = () => {
    const line = document.activeElement.closest("tr.row");
    const link = line?.querySelector("a");
    if (!link || !record(link)) return;
    line.classList.toggle("picked");
    const count = picked().length;
    say(`${link.textContent} ${line.classList.contains("picked") ? "selected" : "not selected"}, ${count} selected`);
  };
  const compare = () => {
    const [a, b] = picked();
    if (picked().length !== 2) {
      say("Select two runs with x to compare them");
      return;
    }
    location.assign(`${base}/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  };
  const follow = (selector) => document.querySelector(selector)?.click();
  const jump = document.getElementById("jump");
  const dialog = document.getElementById("keys");
  const keys = {
    "/": () => (document.getElementById("q") ?? document.getElementById("to") ?? jump)?.select(),
    "?": () => tell(),
    j: () => move(1),
    k: () => move(-1),
    x: pick,
    c: compare,
    "[": () => follow('main a[rel="next"], main [data-older]'),
    "]": () => follow('main a[rel="first"], main [data-newer]'),
    y: () => navigator.clipboard?.writeText(location.href).then(() => say("Address copied")),
    f: () => {
      const failed = firsts("tr[data-failed] a, .part.failed a, .part.timeout a, .to.failed, .to.timeout");
      failed[(failed.indexOf(document.activeElement) + 1) % failed.length]?.focus();
    },
    t: () => {
      const themes = [...document.querySelectorAll(".themes button")];
      const at = themes.findIndex((theme) => theme.getAttribute("aria-pressed") === "true");
      themes[(at + 1) % themes.length]?.click();
    },
  };

  // Keys of one letter get in the way of some ways to speak or type, so they can be switched off.
  const kept = () => localStorage.getItem("hs_keys") !== "off";
  const off = document.getElementById("keys-off");
  const show = () => off.setAttribute("aria-pressed", String(!kept()));
  off.addEventListener("click", () => {
    localStorage.setItem("hs_keys", kept() ? "off" : "on");
    show();
  });
  const open = document.getElementById("keys-open");
  const tell = () => {
    show();
    dialog.showModal();
  };
  open.hidden = false;
  open.addEventListener("click", tell);

  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && !event.altKey) {
      event.preventDefault();
      jump.select();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!kept()) return;
    if (after === "g") {
      after = "";
      follow(`[data-go="${CSS.escape(event.key)}"]`);
      return;
    }
    if (event.key === "g") {
      after = "g";
      return;
    }
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
})();
