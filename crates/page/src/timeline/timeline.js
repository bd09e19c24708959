// Shows who was where: rows of CPUs or of jobs over time. The data are in a script element of the page.
"use strict";
for (const box of document.querySelectorAll("[data-timeline]")) {
  const data = JSON.parse(document.getElementById(box.dataset.timeline).textContent);
  const canvas = box.querySelector("canvas");
  const view = box.querySelector(".tl-view");
  const told = box.querySelector(".tl-told");
  const byJob = box.querySelector(".tl-by-job");
  const room = box.querySelector(".tl-room");
  const seconds = data.unit / 1e9;
  const ROW = 20, AXIS = 26, LEAST = 8;
  const kinds = ["runs", "is measured alone", "fills up beside a measurement", "shares CPUs"];

  // Rows of CPUs, and what follows from them for each job.
  const jobRows = data.jobs.map(() => []), seen = new Map();
  const cpuRows = data.on.map((flat, cpu) => {
    const row = [];
    for (let i = 0, at = 0; i < flat.length; i += 3) {
      const from = at + flat[i], to = from + flat[i + 1], job = flat[i + 2] >> 2, kind = flat[i + 2] & 3;
      at = to;
      if (kind === 3) {
        row.push({ from, to, short: true });
        continue;
      }
      const span = { from, to, job, kind, where: data.cpus[cpu] };
      row.push(span);
      // A job with several CPUs has one span for all of them.
      const key = job + " " + from + " " + to, same = seen.get(key);
      if (same) {
        same.where += "," + data.cpus[cpu];
      } else {
        const own = { ...span };
        seen.set(key, own);
        jobRows[job].push(own);
      }
    }
    return row;
  });
  for (const [job, from, length, where] of data.shared) {
    jobRows[job].push({ from, to: from + length, job, kind: 3, where });
  }
  for (const [job, from, length] of data.short) {
    jobRows[job].push({ from, to: from + length, job, short: true });
  }
  data.waits.forEach((flat, job) => {
    for (let i = 0, at = 0; i < flat.length;) {
      const from = at + flat[i], to = from + flat[i + 1], changes = flat[i + 2], text = data.texts[flat[i + 3]];
      i += 4;
      at = to;
      const why = text.replace(/#/g, () => String(flat[i++]));
      jobRows[job].push({ from, to, job, wait: true, why, changes });
    }
    jobRows[job].sort((a, b) => a.from - b.from);
  });
  const jobOrder = data.jobs.map((_, job) => job);

  let from = 0, to = data.end, selected = null, drag = null;
  const rows = () => (byJob.checked ? jobOrder.map((job) => jobRows[job]) : cpuRows);
  const names = () => (byJob.checked ? data.jobs : data.cpus.map((cpu) => "CPU " + cpu));
  const style = (name) => getComputedStyle(box).getPropertyValue(name).trim();
  const patterns = new Map();

  function fill(context, look) {
    const key = look + style("--ink");
    if (!patterns.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const paint = tile.getContext("2d");
      // Without a look it is nobody's.
      const { colour, hatch, light } = data.looks[look] || { colour: style("--grid"), hatch: "M-2 2L2-2M0 8L8 0M6 10L10 6" };
      paint.fillStyle = colour === "#000" ? style("--ink") : colour;
      paint.fillRect(0, 0, 8, 8);
      paint.strokeStyle = look < 0 ? style("--dim") : light ? "#fff" : "#000";
      paint.lineWidth = 1.2;
      if (hatch) paint.stroke(new Path2D(hatch));
      patterns.set(key, context.createPattern(tile, "repeat"));
    }
    return patterns.get(key);
  }

  // The spans of a row that end after a time begin at this index.
  function first(row, time) {
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].to <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  function label(width) {
    return Math.min(160, Math.max(56, width * 0.18));
  }

  function clock(ticks, step) {
    const s = ticks * seconds, digits = step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step)));
    return s.toFixed(digits) + " s";
  }

  function draw() {
    const all = rows(), width = view.clientWidth, height = view.clientHeight;
    room.style.height = AXIS + all.length * ROW + "px";
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = width + "px";
      canvas.style.height = height + "px";
    }
    const paint = canvas.getContext("2d");
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    const ink = style("--ink"), paper = style("--paper"), dim = style("--dim"), grid = style("--grid");
    paint.fillStyle = paper;
    paint.fillRect(0, 0, width, height);
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    const left = label(width), x = (time) => left + ((time - from) / (to - from)) * (width - left);

    // Ticks of 1, 2 or 5 times a power of ten.
    const wanted = ((to - from) * seconds) / Math.max(2, (width - left) / 90);
    const power = Math.pow(10, Math.floor(Math.log10(wanted)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted);
    paint.textAlign = "center";
    for (let n = Math.ceil((from * seconds) / step); n * step <= to * seconds; n++) {
      const at = x((n * step) / seconds);
      paint.fillStyle = grid;
      paint.fillRect(at, AXIS - 4, 1, height);
      paint.fillStyle = dim;
      const text = clock((n * step) / seconds, step), half = paint.measureText(text).width / 2;
      if (at - half >= left && at + half <= width) paint.fillText(text, at, AXIS / 2);
    }
    const top = view.scrollTop, shownNames = names();
    paint.save();
    paint.beginPath();
    paint.rect(0, AXIS, width, height);
    paint.clip();
    const begin = Math.floor(top / ROW), end = Math.min(all.length, Math.ceil((top + height) / ROW));
    for (let r = begin; r < end; r++) {
      const y = AXIS + r * ROW - top, row = all[r];
      let busyTo = -1;
      for (let i = first(row, from); i < row.length && row[i].from < to; i++) {
        const span = row[i], a = Math.max(left, x(span.from)), b = Math.min(width, x(span.to));
        const isSelected = selected && selected.r === r && selected.span === span;
        // What is narrower than a part of a pixel is drawn once.
        if (b <= busyTo + 0.4 && !isSelected) continue;
        const w = Math.max(b - a, span.wait ? 0.6 : 1);
        busyTo = a + w;
        if (span.wait) {
          paint.fillStyle = dim;
          paint.globalAlpha = 0.5;
          paint.fillRect(a, y + ROW / 2 - 0.5, w, 1);
          paint.globalAlpha = 1;
        } else if (span.short) {
          paint.fillStyle = fill(paint, -1);
          paint.fillRect(a, y + 5, w, ROW - 10);
        } else {
          paint.fillStyle = fill(paint, data.group[span.job] % data.looks.length);
          paint.globalAlpha = span.kind === 3 ? 0.45 : 1;
          paint.fillRect(a, y + 2, w, ROW - 4);
          paint.globalAlpha = 1;
          if (span.kind === 1 || span.kind === 2) {
            paint.fillStyle = ink;
            paint.fillRect(a, y + ROW - (span.kind === 1 ? 5 : 4), w, span.kind === 1 ? 3 : 1.5);
          }
          if (w > 3) {
            paint.strokeStyle = paper;
            paint.lineWidth = 0.75;
            paint.strokeRect(a, y + 2, w, ROW - 4);
          }
          const text = byJob.checked ? span.where : data.jobs[span.job];
          if (w > LEAST * 3) {
            let shown = text;
            while (shown.length > 1 && paint.measureText(shown).width > w - 10) shown = shown.slice(0, -1);
            if (shown.length > 2 || shown === text) {
              const wide = paint.measureText(shown).width + 4;
              paint.fillStyle = paper;
              paint.globalAlpha = 0.85;
              paint.fillRect(a + 3, y + 4, wide, ROW - 8);
              paint.globalAlpha = 1;
              paint.fillStyle = ink;
              paint.textAlign = "left";
              paint.fillText(shown, a + 5, y + ROW / 2 + 0.5);
            }
          }
        }
        if (isSelected) {
          paint.strokeStyle = ink;
          paint.lineWidth = 2.5;
          paint.strokeRect(a, y + 1, Math.max(w, 2), ROW - 2);
        }
      }
      paint.fillStyle = paper;
      paint.fillRect(0, y, left - 4, ROW);
      paint.fillStyle = selected && selected.r === r ? ink : dim;
      paint.textAlign = "left";
      let name = shownNames[r];
      while (name.length > 1 && paint.measureText(name).width > left - 10) name = name.slice(0, -1);
      paint.fillText(name, 2, y + ROW / 2 + 0.5);
    }
    paint.restore();
  }

  function tell(r, span) {
    if (!span) {
      told.textContent = r === null ? "" : names()[r] + ": nobody";
      return;
    }
    const time = (ticks) => (ticks * seconds).toFixed(3);
    const when = `${time(span.from)} to ${time(span.to)} s (${time(span.to - span.from)} s)`;
    if (span.short) {
      told.textContent = `${names()[r]}: something, too short to show, ${when}. The series has all.`;
      return;
    }
    const job = data.jobs[span.job];
    if (span.wait) {
      const changes = span.changes ? ` The reason had changed ${span.changes} times.` : "";
      told.textContent = `${job} waits, ${when}. ${span.why}${changes}`;
      return;
    }
    // Why it had waited before.
    const own = jobRows[span.job];
    let before = null;
    for (let i = first(own, span.from - 1); i >= 0 && i < own.length && own[i].from < span.from; i++) {
      if (own[i].wait && own[i].to === span.from) before = own[i];
    }
    const why = before ? ` Before, it had waited ${time(before.to - before.from)} s: ${before.why}` : "";
    told.textContent = `${job} ${kinds[span.kind]} on CPU ${span.where}, ${when}.${why}`;
  }

  function at(event) {
    const place = view.getBoundingClientRect(), width = view.clientWidth, left = label(width);
    const px = event.clientX - place.left, py = event.clientY - place.top;
    const time = from + ((px - left) / (width - left)) * (to - from);
    const r = Math.floor((py - AXIS + view.scrollTop) / ROW), row = rows()[r];
    const inside = py > AXIS && px > left && row;
    const span = inside ? row.slice(first(row, time), first(row, time) + 1).find((one) => one.from <= time) : null;
    return { time, r: inside ? r : null, span: span || null };
  }

  function zoom(factor, around) {
    const middle = around === undefined ? (from + to) / 2 : around;
    const length = Math.min(data.end, Math.max(10, (to - from) * factor));
    from = Math.max(0, Math.min(data.end - length, middle - (middle - from) * (length / (to - from))));
    to = from + length;
    draw();
  }

  function pan(share) {
    const length = to - from;
    from = Math.max(0, Math.min(data.end - length, from + share * length));
    to = from + length;
    draw();
  }

  function whole() {
    from = 0;
    to = data.end;
    draw();
  }

  // Selects the next span of a row, or the one at the same time in another row.
  function step(rowStep, spanStep) {
    const all = rows();
    if (!all.length) return;
    const r = Math.max(0, Math.min(all.length - 1, (selected ? selected.r : 0) + rowStep)), row = all[r];
    const time = selected && selected.span ? selected.span.from : from;
    let i = first(row, time);
    if (selected && selected.span && spanStep) i = row.indexOf(selected.span) + spanStep;
    const span = row[Math.max(0, Math.min(row.length - 1, i))] || null;
    selected = { r, span };
    if (span && (span.to > to || span.from < from)) {
      const length = to - from;
      from = Math.max(0, Math.min(data.end - length, span.from - length / 10));
      to = from + length;
    }
    const y = AXIS + r * ROW;
    if (y - view.scrollTop < AXIS) view.scrollTop = y - AXIS;
    if (y + ROW - view.scrollTop > view.clientHeight) view.scrollTop = y + ROW - view.clientHeight;
    draw();
    tell(r, span);
  }

  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: whole,
    a: () => pan(-0.2), d: () => pan(0.2), Home: () => pan(-1e9), End: () => pan(1e9),
    ArrowLeft: () => step(0, -1), ArrowRight: () => step(0, 1), ArrowUp: () => step(-1, 0), ArrowDown: () => step(1, 0),
  };
  view.addEventListener("keydown", (event) => {
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  view.addEventListener("scroll", draw);
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, at(event).time);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") return;
    drag = { x: event.clientX, from };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const width = view.clientWidth - label(view.clientWidth);
      pan((drag.from - ((event.clientX - drag.x) / width) * (to - from) - from) / (to - from));
      return;
    }
    const found = at(event);
    if (found.span || found.r !== null) tell(found.r, found.span);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && Math.abs(event.clientX - drag.x) < 3) {
      const found = at(event);
      if (found.r !== null) selected = { r: found.r, span: found.span };
      tell(found.r, found.span);
      draw();
    }
    drag = null;
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, at(event).time));
  for (const button of box.querySelectorAll("button[data-do]")) {
    const act = { in: () => zoom(0.5), out: () => zoom(2), all: whole, left: () => pan(-0.3), right: () => pan(0.3) };
    button.addEventListener("click", act[button.dataset.do]);
  }
  for (const radio of box.querySelectorAll("input[type=radio]")) {
    radio.addEventListener("change", () => {
      selected = null;
      view.scrollTop = 0;
      fit();
    });
  }
  function fit() {
    view.style.height = Math.min(AXIS + rows().length * ROW + 2, Math.max(240, window.innerHeight * 0.7)) + "px";
    draw();
  }
  new ResizeObserver(fit).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  box.hidden = false;
  fit();
}
