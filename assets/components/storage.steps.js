// For storage.js: which tensors are open, and memory as it was after any step.

// What a picture does with its steps: rows of the timeline, tensors, storages and `at`, the step that is shown.
class Steps extends Pointing {
  // A click or Enter on a line: open its tensors, or fold them when they were open and in view already.
  choose(number) {
    const { tensors } = this.steps[number]
    const again = this.at === number && tensors.every((one) => this.tensors[one].isOpen)
    this.open(tensors, !again)
    this.go(number)
    if (again || !tensors.length) return
    this.home = tensors[0]
    this.rest()
    this.tensors[tensors[0]].card.scrollIntoView({ block: "nearest", behavior: "instant" })
  }

  open(numbers, isOpen) {
    for (const number of numbers) {
      const tensor = this.tensors[number]
      tensor.isOpen = isOpen
      if (isOpen && !tensor.card) this.storages[tensor.storage].cards.append((tensor.card = this.card(tensor)))
      if (tensor.card) tensor.card.hidden = !isOpen
    }
    for (const { tensors, cards, section } of this.storages) {
      cards.append(...tensors.filter((tensor) => tensor.card).map((tensor) => tensor.card)) // in the order of the steps
      section.hidden = !tensors.some((tensor) => tensor.isOpen)
    }
    this.rows.forEach((row, at) => {
      const { tensors } = this.steps[at]
      row.setAttribute("aria-expanded", String(tensors.length > 0 && tensors.every((one) => this.tensors[one].isOpen)))
    })
    if (this.width) this.refit()
  }

  // Show memory as it was once step `number` was done: cells that it wrote flash, what came later is marked.
  go(number) {
    this.at = number
    this.rows.forEach((row, at) => {
      row.classList.toggle("now", at === number)
      row.tabIndex = at === number ? 0 : -1
      if (at === number) row.setAttribute("aria-current", "step")
      else row.removeAttribute("aria-current")
    })
    for (const storage of this.storages) this.paint(storage)
    this.rest()
  }

  // The values of a storage as of this.at, in its strips and in the grids of its tensors.
  paint(storage) {
    storage.section.classList.toggle("later", storage.step > this.at)
    for (const tensor of storage.tensors) tensor.card?.classList.toggle("later", tensor.step > this.at)
    storage.readings.forEach((reading, number) => {
      reading.now = [...reading.values]
      const [written, fresh] = [new Set(), new Map()]
      for (const { step, cells, before } of [...reading.writes].reverse())
        cells.forEach((cell, i) => {
          if (step === this.at) fresh.set(cell, before[i])
          if (step > this.at) reading.now[cell] = before[i] ?? reading.now[cell]
          else written.add(cell)
        })
      if (!reading.writes.length) return
      const strip = storage.strips[number]
      strip?.nodes.forEach((node, cell) => {
        mark(node, reading.now[cell], written.has(cell), fresh.has(cell))
        const was = fresh.get(cell)
        if (node.under && was !== undefined && was !== reading.now[cell]) node.under.dataset.was = was
        else if (node.under) delete node.under.dataset.was
      })
      for (const tensor of storage.tensors)
        if (tensor.reading === number)
          tensor.nodes.forEach((node, k) => mark(node, reading.now[tensor.cells[k]] ?? this.value(tensor, tensor.cells[k]), written.has(tensor.cells[k]), fresh.has(tensor.cells[k])))
    })
  }

  // What the chosen step did to memory, in words.
  account() {
    const step = this.steps[this.at]
    if (!step || (this.at === this.steps.length - 1 && step.kind !== "write")) return [this.hint]
    const said = [`${this.texts.step} ${this.at}/${this.steps.length - 1}`, ": "]
    if (step.kind !== "write") return [...said, step.name && !step.whole ? `${step.name} = ${ellipsis(step)}${step.source}` : step.whole || step.source, step.why ? ` – ${step.word}: ${step.why}` : ` – ${step.word}`]
    const { letter, readings } = this.storages[step.storage]
    const found = readings.flatMap((reading) => reading.writes.filter((write) => write.step === this.at).map((write) => [reading, write]))
    const [reading, write] = found[0] || []
    if (!this.kept || !write) return [...said, step.source]
    const shown = write.cells.slice(0, 6).map((cell, i) => fill(this.texts.written, { cell, before: write.before[i], after: reading.now[cell] }))
    const rest = write.cells.length - shown.length
    return [...said, step.source, ` ${fill(this.texts.writes, { letter })} `, shown.join(", ") + (rest > 0 ? ` ${fill(this.texts.others, { count: counted(rest) })}` : "")]
  }
}

// A cell as of the chosen step; cells too small for a text stay without one.
function mark(node, text, written, fresh) {
  if (node.textContent && node.textContent !== text) node.textContent = text
  node.classList.toggle("written", written)
  node.classList.toggle("fresh", fresh)
}
