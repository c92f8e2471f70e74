// For storage.js: the steps in a row, and why a view does or does not work.

// Each line of code as a chain of steps, and the bytes that all storages hold by then; a click calls choose(step).
function timeline(steps, choose) {
  const most = Math.max(1, ...steps.map((step) => step.held.reduce((sum, part) => sum + part, 0)))
  const lines = make("ol", steps.at(-1).line > 1 ? "timeline lines" : "timeline")
  lines.setAttribute("aria-label", "Steps")
  let list = null
  let line = -1
  for (const step of steps) {
    if (!list || (step.whole && step.line !== line)) {
      list = make("ol", "chain")
      lines.append(make("li", "", list))
    }
    line = step.line
    const item = make("li")
    const button = make("button", `step ${step.kind}`)
    button.type = "button"
    const bars = make("span", "bars")
    bars.setAttribute("aria-hidden", "true")
    step.held.forEach((bytes, number) => {
      if (!bytes) return
      const bar = make("i", `s${number % 4}`)
      bar.style.height = `${Math.max(6, (100 * bytes) / most)}%`
      bars.append(bar)
    })
    button.append(
      bars,
      make("code", "source", step.name && make("span", "", `${step.name} = `), step.whole || step.source),
      make("span", `badge ${step.kind}`, step.word),
      make("span", "bytes", make("b", "", step.added), step.total && ` · ${step.total} in all`),
    )
    if (step.why) button.title = step.why
    button.onclick = () => choose(step)
    item.append(button)
    list.append(item)
  }
  return lines
}

// The old dimensions in runs that merge, between them the comparison; under them what was asked for.
function reason(why, use) {
  const box = make("div", "why")
  const has = make("div", "dims")
  has.append(named(why.tensor, "has"))
  why.runs.forEach((run, r) => {
    if (r) has.append(joint(why.between[r - 1], r - 1 === why.breaks))
    const group = make("span", `run r${r % 4}`)
    const dims = make("span", "merging")
    run.dims.forEach(({ dim, size, stride }, i) => {
      if (i) dims.append(make("span", "joint merged", run.joints[i - 1]))
      dims.append(make("span", "dim", make("b", "", size), make("small", "", `dim ${dim}, stride ${stride}`)))
    })
    group.append(dims, make("small", "tag", run.text))
    has.append(group)
  })
  if (why.runs.length) box.append(has)
  if (why.asked.length) {
    const asked = make("div", "dims asked")
    asked.append(named(why.view, why.error ? "needs" : "gives"))
    why.asked.forEach(({ dim, size, parts, text, one }, i) => {
      if (i) asked.append(make("span", "joint", "·"))
      const group = make("span", `dim ${parts.length > 1 ? "crosses" : one ? "" : `r${parts[0] % 4}`}`)
      if (parts.length > 1) {
        group.style.setProperty("--from", `var(--run${parts[0] % 4})`)
        group.style.setProperty("--to", `var(--run${parts[parts.length - 1] % 4})`)
      }
      group.append(make("b", "", size), make("small", "", `dim ${dim}${text}`))
      asked.append(group)
    })
    box.append(asked)
  }
  if (why.error) box.append(make("p", "error", why.error))
  if (why.fixes.length) box.append(make("div", "fixes", make("em", "", "What works"), ...why.fixes.map((fix) => fixButton(fix, use))))
  return box
}

// Which tensor or step a row of dimensions belongs to.
function named(code, does) {
  const label = make("em", "", make("code", "", code), ` ${does}`)
  label.title = code
  return label
}

function fixButton({ instead, cost, code }, use) {
  const button = make("button", "fix", "Use ", make("code", "", instead), make("span", "", cost))
  button.type = "button"
  button.onclick = () => use(code)
  return button
}

function joint(text, broken) {
  return make("span", `joint${broken ? " broken" : ""}`, text)
}
