// For storage.js: the steps, a line each, and why a view does or does not work.

const ICONS = {
  start: "M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6z",
  same: "M3 6h10M3 10h10",
  view: "M1.5 8Q8 1 14.5 8Q8 15 1.5 8zM8 6a2 2 0 1 0 0 4a2 2 0 1 0 0-4z",
  copy: "M2.5 5.5h7v8h-7zM6 5.5v-3h7.5v8h-4",
  write: "M3 13l.8-3.3L11 2.5l2.5 2.5l-7.2 7.2zM9.5 4l2.5 2.5",
  refused: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12zM3.8 3.8l8.4 8.4",
}

// Beside its word, so that no kind of step is told by its colour alone.
function icon(kind) {
  const drawn = vector("svg", { viewBox: "0 0 16 16", width: 14, height: 14, class: "icon", "aria-hidden": "true" })
  drawn.append(vector("path", { d: ICONS[kind] }))
  return drawn
}

// Stands for the result that a step goes on from, unless its source says where that stands.
function ellipsis(step) {
  return step.source.endsWith("…") ? "" : "…"
}

// Every step of the program as a line: code, what happened, shape, strides, new bytes, whose storage. A line is a button
// that opens its tensors; the arrow keys go from line to line and show memory as it was then.
function timeline(picture) {
  const { steps, texts } = picture
  const most = Math.max(1, ...steps.map((step) => step.once))
  const table = make("div", "timeline")
  table.setAttribute("role", "toolbar")
  table.setAttribute("aria-orientation", "vertical")
  table.setAttribute("aria-label", texts.steps)
  const head = make("div", "heading", ...[texts.step, "", texts.shape, texts.strides, texts.added, texts.inside, texts.storage, texts.total].map((text) => make("span", "", text)))
  head.setAttribute("aria-hidden", "true")
  table.append(head)
  steps.forEach((step, at) => {
    const goesOn = !step.whole
    const row = make("button", `step ${step.kind}${goesOn ? " on" : ""}`)
    row.type = "button"
    const bars = make("span", "bars")
    step.held.forEach((bytes, number) => {
      const bar = make("i", `s${number % 4}`)
      bar.style.width = `${(100 * bytes) / most}%`
      if (bytes && step.total) bars.append(bar)
    })
    const gone = make("i", "gone")
    gone.style.width = `${(100 * (step.once - step.held.reduce((sum, part) => sum + part, 0))) / most}%`
    if (step.total) bars.append(gone)
    bars.title = texts.bars
    const { letter } = picture.storages[step.storage] || {}
    const source = make("code", "source", step.name && make("span", "", `${step.name} = ${goesOn ? ellipsis(step) : ""}`), step.whole || step.source)
    source.title = source.textContent
    if (step.times > 1) source.append(make("b", "times", `× ${step.times.toLocaleString("en")}`))
    row.append(
      source,
      make("span", `badge ${step.kind}`, icon(step.kind), step.word),
      make("span", "shape", step.shape),
      make("span", "stride", step.stride),
      make("span", `bytes${step.added && step.added !== "0 B" ? " new" : ""}`, step.added),
      make("span", "inside", step.inside && `+ ${step.inside}`),
      make("span", `of s${Math.max(step.storage, 0) % 4}`, letter && make("b", "", letter)),
      make("span", "held", bars, make("span", "total", step.total)),
    )
    const about = [step.times > 1 && texts.alike, step.why].filter(Boolean).join(" ")
    if (about) row.title = about
    row.onclick = () => picture.choose(at)
    table.append(row)
    picture.rows.push(row)
  })
  table.onkeydown = (event) => {
    const from = picture.rows.indexOf(event.target)
    const moves = { ArrowDown: from + 1, ArrowRight: from + 1, ArrowUp: from - 1, ArrowLeft: from - 1, Home: 0, End: steps.length - 1 }
    const to = moves[event.key]
    if (from < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    const row = picture.rows[Math.min(Math.max(to, 0), steps.length - 1)]
    picture.go(picture.rows.indexOf(row))
    row.focus()
  }
  return table
}

// The old dimensions in runs that merge, between them the comparison; under them what was asked for.
function reason(why, texts, use) {
  const box = make("div", "why")
  const tight = why.runs.flatMap((run) => run.dims).length > 3 // a row of more dimensions has room for numbers alone
  const has = make("div", `dims${tight ? " tight" : ""}`)
  has.append(named(why.tensor, texts.has))
  why.runs.forEach((run, r) => {
    if (r) has.append(joint(why.between[r - 1], r - 1 === why.breaks))
    const group = make("span", `run r${r % 4}`)
    const dims = make("span", "merging")
    run.dims.forEach(({ dim, size, stride }, i) => {
      if (i) dims.append(make("span", "joint merged", run.joints[i - 1]))
      dims.append(make("span", "dim", make("b", "", size), make("small", "", fill(tight ? texts.stride_alone : texts.dim_stride, { dim, stride }))))
    })
    group.append(dims, run.joints.length ? make("small", "tag", run.text) : "")
    has.append(group)
  })
  if (why.runs.length) box.append(has)
  if (why.asked.length) {
    const asked = make("div", `dims asked${tight ? " tight" : ""}`)
    asked.append(named(why.view, why.error ? texts.needs : texts.gives))
    why.asked.forEach(({ dim, size, parts, text, one }, i) => {
      if (i) asked.append(make("span", "joint", "·"))
      const group = make("span", `dim ${parts.length > 1 ? "crosses" : one ? "" : `r${parts[0] % 4}`}`)
      if (parts.length > 1) {
        group.style.setProperty("--from", `var(--run${parts[0] % 4})`)
        group.style.setProperty("--to", `var(--run${parts[parts.length - 1] % 4})`)
      }
      group.append(make("b", "", size), make("small", "", [fill(texts.dim, { dim }), text].filter(Boolean).join(", ")))
      asked.append(group)
    })
    box.append(asked)
  }
  if (why.error) box.append(make("p", "error", why.error))
  if (why.fixes.length) box.append(make("div", "fixes", make("em", "", texts.works), ...why.fixes.map((fix) => fixButton(fix, texts.use, use))))
  return box
}

// Which tensor or step a row of dimensions belongs to.
function named(code, does) {
  const label = make("em", "", make("code", "", code), ` ${does}`)
  label.title = code
  return label
}

function fixButton({ instead, cost, code }, label, use) {
  const button = make("button", "fix", `${label} `, make("code", "", instead), make("span", "", cost))
  button.type = "button"
  button.onclick = () => use(code)
  return button
}

function joint(text, broken) {
  return make("span", `joint${broken ? " broken" : ""}`, text)
}
