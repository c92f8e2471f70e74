// For storage.js: the steps in a row, and why a view does or does not work.

// The chain, one step after the other, and the bytes that all storages hold by then; a click calls choose(step).
function timeline(steps, choose) {
  const most = Math.max(1, ...steps.map((step) => step.held.reduce((sum, part) => sum + part, 0)))
  const list = make("ol", "timeline")
  list.setAttribute("aria-label", "Steps")
  let line = 0
  for (const step of steps) {
    const item = make("li", step.line !== line && line ? "line" : "")
    line = step.line
    const button = make("button", `step ${step.kind}`)
    button.type = "button"
    const bars = make("span", "bars")
    bars.setAttribute("aria-hidden", "true")
    step.held.forEach((bytes, number) => {
      if (!bytes) return
      const bar = make("i", `s${number % 4}`)
      bar.style.height = `${Math.max(2, (34 * bytes) / most)}px`
      bars.append(bar)
    })
    button.append(
      bars,
      make("code", "source", step.name && make("span", "", `${step.name} = `), step.source),
      make("span", `badge ${step.kind}`, step.word),
      make("span", "bytes", make("b", "", step.added), step.total && ` · ${step.total} in all`),
    )
    if (step.why) button.title = step.why
    button.onclick = () => choose(step)
    item.append(button)
    list.append(item)
  }
  return list
}

// The old dimensions in runs that merge, between them the comparison; under them what was asked for.
function reason(why, use) {
  const box = make("div", "why")
  const has = make("div", "dims")
  has.append(make("em", "", why.has))
  why.runs.forEach((run, r) => {
    if (r) has.append(joint(why.between[r - 1], r - 1 === why.breaks))
    const group = make("span", `run r${r % 4}`)
    run.dims.forEach(({ dim, size, stride }, i) => {
      if (i) group.append(make("span", "joint merged", run.joints[i - 1]))
      group.append(make("span", "dim", make("b", "", size), make("small", "", `dim ${dim}, stride ${stride}`)))
    })
    group.append(make("small", "tag", run.text))
    has.append(group)
  })
  if (why.runs.length) box.append(has)
  if (why.asked.length) {
    const asked = make("div", "dims asked")
    asked.append(make("em", "", why.wants))
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

function fixButton({ instead, cost, code }, use) {
  const button = make("button", "fix", "Use ", make("code", "", instead), make("span", "", cost))
  button.type = "button"
  button.onclick = () => use(code)
  return button
}

function joint(text, broken) {
  return make("span", `joint${broken ? " broken" : ""}`, text)
}
