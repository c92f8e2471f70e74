// For storage.js: a storage as a strip of cells, and how the tensor in view reads it.

const RISE = 20 // pixels between one height of arcs and the next
const DENSE_STRIP = 1024 // the same for a storage
const INDENT = 20 // pixels from the edge of a storage to its strip
const TINY = 6 // pixels of the smallest square

class Strips extends Steps {
  strip(storage, reading, number) {
    const count = reading.values.length
    const length = Math.max(reading.widest, String(Math.max(count - 1, 0)).length)
    const dense = count > DENSE_STRIP
    const roomy = count <= 16 && length < 5
    const numbered = dense || (count > 48 && count * narrow(length) > this.width - INDENT)
    const width = this.width - INDENT - (numbered ? 48 : 2)
    const [least, most] = roomy ? [30, 48] : [narrow(length), 30]
    const pitch = dense ? TINY : Math.max(least, Math.min(most, Math.floor(width / Math.max(count, 1))))
    const columns = fitColumns(count, Math.floor(width / pitch), Math.max(storage.row, 1))
    const broken = columns < count
    const strip = { storage, reading, number, nodes: [], columns, pitch, broken, out: new Set() }
    const svg = vector("svg", { "aria-hidden": "true", width: 0, height: 0 })
    strip.svg = svg
    const grid = make("div", `strip${dense ? " dense" : roomy ? " roomy" : numbered ? " numbered" : ""}`)
    grid.style.gridTemplateColumns = `${numbered ? "max-content " : ""}repeat(${columns}, ${pitch}px)`
    if (dense) grid.style.gridAutoRows = `${pitch}px`
    for (let cell = 0; cell < count; cell++) {
      const node = make("div", "c", dense ? "" : reading.values[cell])
      node.at = { strip, cell }
      node.style.setProperty("--p", shade(cell, reading.total))
      strip.nodes.push(node)
      if (numbered) {
        // A line of tiny squares is lower than its number, so every third line has one.
        const line = cell / columns
        if (dense ? line % 3 === 0 : line % 1 === 0) grid.append(make("div", "line", cell))
        grid.append(node)
      } else {
        node.under = make("div", "o", cell)
        grid.append(make("div", "slot", node, node.under))
      }
    }
    // Dashed is what no tensor here reads; a cell that only the tensor in view leaves out is merely pale.
    if (storage.tensors.every((tensor) => tensor.drawn === tensor.total)) {
      const used = new Set(storage.tensors.flatMap((tensor) => this.cellsIn(strip, tensor)))
      for (let cell = 0; cell < count; cell++) if (!used.has(cell)) strip.nodes[cell].classList.add("unread")
      if (used.size < count) strip.note = this.texts.unread
    }
    const scroll = make("div", "scroll", grid)
    this.walkable(scroll, strip, this.texts.row, fill(number ? this.texts.letter_read : this.texts.letter, { letter: storage.letter, dtype: reading.dtype }))
    strip.figure = make("figure", "")
    if (storage.readings.length > 1) strip.figure.append(make("figcaption", "", fill(number ? this.texts.same_bytes : this.texts.read_as, reading)))
    strip.figure.append(svg, scroll)
    if (strip.note) strip.figure.append(make("figcaption", "", strip.note))
    if (count < reading.total)
      strip.figure.append(make("figcaption", "", fill(count ? this.texts.first_cells : this.texts.not_made, { count: counted(count), total: counted(reading.total) })))
    return strip
  }

  // The cells of a strip that a tensor reads, which may be of another element size.
  cellsIn(strip, tensor) {
    const { item } = strip.storage.readings[tensor.reading]
    const own = strip.reading.item
    if (item === own) return tensor.cells
    const found = []
    for (const cell of tensor.cells)
      for (let at = Math.floor((cell * item) / own); at * own < (cell + 1) * item; at++) found.push(at)
    return found
  }

  // Show on the strip how one tensor reads it: cells outside are hollow, arcs are its strides.
  activate(number) {
    if (number === this.active) return
    this.tensors[this.active]?.card?.classList.remove("active")
    this.active = number
    const tensor = this.tensors[number]
    tensor?.card?.classList.add("active")
    for (const storage of this.storages) {
      if (storage.section.hidden) continue
      const opened = storage.tensors.filter((one) => one.isOpen)
      const shown = tensor?.isOpen && storage.number === tensor.storage ? tensor : opened.includes(storage.shown) ? storage.shown : opened.at(-1)
      if (!shown || storage.shown === shown) continue
      storage.shown = shown
      for (const strip of storage.strips) this.read(strip, shown)
    }
  }

  read(strip, tensor) {
    const mine = tensor.reading === strip.number
    const out = new Set()
    if (mine && tensor.drawn === tensor.total)
      for (let cell = 0; cell < strip.nodes.length; cell++) if (!tensor.elementsAt.has(cell)) out.add(cell)
    for (const cell of strip.out) if (!out.has(cell)) strip.nodes[cell].classList.remove("out")
    for (const cell of out) if (!strip.out.has(cell)) strip.nodes[cell].classList.add("out")
    strip.out = out
    for (const node of strip.marked || []) {
      node.classList.remove("hop")
      if (node.under) delete node.under.dataset.times
    }
    strip.marked = []
    if (!mine) {
      strip.svg.setAttribute("height", 0)
      strip.svg.replaceChildren()
      return
    }
    for (const cell of tensor.hops?.cells || []) {
      strip.nodes[cell]?.classList.add("hop")
      if (strip.nodes[cell]) strip.marked.push(strip.nodes[cell])
    }
    if (strip.nodes.length <= 64)
      for (const [cell, elements] of tensor.elementsAt)
        if (elements.length > 1 && strip.nodes[cell]) {
          if (strip.nodes[cell].under) strip.nodes[cell].under.dataset.times = `×${elements.length}`
          strip.marked.push(strip.nodes[cell])
        }
    this.arcs(strip, tensor)
  }

  // Strides as hops from the first element to its neighbour in each dimension; for a refused view, the hops it needs.
  arcs(strip, tensor) {
    const { shape, stride, offset, total, hops: wanted } = tensor
    const count = strip.nodes.length
    let hops = []
    let said = ""
    const source = this.tensors[tensor.of]
    const found = source?.storage === tensor.storage && source.reading === tensor.reading ? source.elementsAt.get(offset) : null
    if (found) {
      // A single element has no strides of its own: the way to it are those of the tensor that it was taken from.
      const index = indices(source.shape, found[0])
      let at = source.offset
      hops = index.map((i, d) => ({ from: at, to: (at += i * source.stride[d]), text: `${i}·${source.stride[d]}` }))
      said = fill(this.texts.at_cell, { sum: [source.offset, ...hops.map((hop) => hop.text)].join(" + "), cell: offset })
    } else if (wanted) hops = wanted.steps.map((by, i) => ({ from: wanted.cells[i], to: wanted.cells[i + 1], text: signed(by) }))
    else if (total > 0)
      hops = shape
        .map((size, d) => ({ size, from: offset, to: offset + stride[d], text: way(d, shape.length) + signed(stride[d]) }))
        .filter((hop) => hop.size > 1)
    const steps = hops.map((hop) => hop.text).join(wanted ? ", " : "  ")
    said ||= hops.length ? fill(wanted ? this.texts.would_step : this.texts.one_step, { steps }) : ""
    const shared = strip.marked.some((node) => node.under?.dataset.times)
    strip.storage.reads.replaceChildren(
      make("code", "", tensor.name),
      make("span", wanted ? "broken" : "", ` ${said}`),
      ...(shared ? [make("span", "key", this.texts.shared)] : []),
    )
    hops = hops.filter((hop) => hop.from < count && hop.to < count && hop.to >= 0 && hop.to !== hop.from)
    const svg = strip.svg
    svg.setAttribute("class", wanted ? "broken" : "")
    if (strip.broken || !hops.length) {
      svg.setAttribute("height", 0)
      svg.replaceChildren()
      return
    }
    const spans = [...new Set(hops.map((hop) => Math.abs(hop.to - hop.from)))].sort((a, b) => a - b)
    const height = 14 + RISE * spans.length
    svg.setAttribute("width", Math.min(count * strip.pitch, this.width - INDENT))
    svg.setAttribute("height", height)
    const paths = []
    const labels = []
    for (const hop of hops) {
      const rise = RISE * (spans.indexOf(Math.abs(hop.to - hop.from)) + 1) - 8
      const [a, b] = [hop.from, hop.to].map((cell) => (cell + 0.5) * strip.pitch)
      const end = height - 1
      paths.push(
        vector("path", { d: `M ${a} ${end} A ${Math.abs(b - a) / 2} ${rise} 0 0 ${b > a ? 1 : 0} ${b} ${end}` }),
        vector("path", { d: `M ${b - 3.5} ${end - 6} L ${b} ${end} L ${b + 3.5} ${end - 6}` }),
      )
      labels.push(vector("text", { x: (a + b) / 2, y: end - rise - 4 }, hop.text))
    }
    svg.replaceChildren(...paths, ...labels)
  }
}
