// Keys, refreshing while a page is looked at, and the zone of the browser. Pages work without it.
"use strict";

(() => {
  const base = document.body.dataset.base;
  const rows = () => [...document.querySelectorAll("main tr.row a, main .part a")].filter(
    (link, at, all) => link.closest("tr, .part") !== all[at - 1]?.closest("tr, .part"),
  );
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");
  let after = "";

  // The server draws times in the zone that it is told.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.split("; ").some((cookie) => cookie === `hs_zone=${zone}`);
  if (zone && !known && /^[A-Za-z0-9/_+-]{1,64}$/.test(zone)) {
    document.cookie = `hs_zone=${zone}; Path=${base}; SameSite=Lax; Max-Age=31536000`;
    const isDrawn = document.body.dataset.zone === zone;
    const isKept = document.cookie.includes(`hs_zone=${zone}`);
    if (!isDrawn && isKept && document.querySelector("main time")) location.reload();
  }

  // Parts that may change ask again while they are seen and nothing in them has the focus.
  setInterval(() => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll("[data-live]")) {
      if (!part.contains(document.activeElement)) htmx.trigger(part, "refresh");
    }
  }, 5000);

  const move = (by) => {
    const links = rows();
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at < 0 && by < 0 ? 0 : at + by))]?.focus();
  };
  const keys = {
    "/": () => document.getElementById("q")?.select(),
    j: () => move(1),
    k: () => move(-1),
    f: () => {
      const failed = [...document.querySelectorAll("tr[data-failed] a, .part.failed a, .part.timeout a")];
      const at = failed.indexOf(document.activeElement);
      failed[(at + 1) % failed.length]?.focus();
    },
    t: () => {
      const themes = [...document.querySelectorAll(".themes button")];
      const at = themes.findIndex((theme) => theme.getAttribute("aria-pressed") === "true");
      themes[(at + 1) % themes.length]?.click();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (after === "g") {
      after = "";
      document.querySelector(`[data-go="${CSS.escape(event.key)}"]`)?.click();
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
