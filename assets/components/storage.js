// The steps of a program, a line each, and the memory they leave: every storage once, as a strip of cells, under it the
// tensors on it that are open, as nested grids. A line of the timeline opens its tensors and shows memory as of then.
// Pointing at an element, or walking to it with the arrow keys, lights the same bytes wherever they are drawn.
// All text is set with textContent. A run with the same data leaves the picture, and the focus in it, as it is.
const RISE = 20 // pixels between one height of arcs and the next
const DENSE = 400 // a tensor of more elements is drawn as small squares, whose values are read by pointing
const DENSE_STRIP = 1024 // the same for a storage
const INDENT = 20 // pixels from the edge of a storage to its strip
const TINY = 6 // pixels of the smallest square
const FEW = 2 // a program of so many steps after the start is shown with all its tensors open

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.fix = (code) => setTriggerValue("fix", code)
  root.ask = (layout) => setTriggerValue("tried", layout)
  const { verdict, ...picture } = data
  const drawn = JSON.stringify(picture)
  if (root.drawn !== drawn) {
    root.drawn = drawn
    root.picture = new Picture(root, picture)
  }
  root.picture.judge(verdict)
  if (!root.watching) {
    root.watching = new ResizeObserver(() => root.picture.fit())
    root.watching.observe(root)
  }
}

class Picture extends Steps {
  constructor(root, data) {
    super()
    this.root = root
    this.steps = data.steps
    this.kept = data.kept
    this.most = data.most
    this.tries = data.tries
    this.storages = data.storages.map((storage, number) => ({ ...storage, number, strips: [], tensors: [] }))
    for (const { readings } of this.storages)
      for (const reading of readings) reading.widest = longest([...reading.values, ...reading.writes.flatMap((write) => write.before)])
    this.tensors = data.tensors.map((tensor, number) => this.located(tensor, number))
    this.why = data.why
    this.home = data.active
    this.active = -1
    this.at = Math.max(this.steps.length - 1, 0)
    this.lit = []
    this.rove = new Map()
    this.readout = make("p", "readout", HINT)
    this.readout.setAttribute("role", "status")
    this.said = ""
    this.list = make("div", "storages", ...this.storages.map((storage) => this.storage(storage)))
    this.rows = []
    // A few steps are seen at a glance in the picture itself, which then stands first.
    const steps = this.steps.length > 1 ? [timeline(this)] : []
    const isLong = this.steps.length > FEW + 1
    root.replaceChildren(
      ...(isLong ? steps : []),
      ...(this.why ? [reason(this.why, (code) => root.fix(code))] : []),
      this.readout,
      this.list,
      ...(isLong ? [] : steps),
    )
    this.width = 0
    this.list.classList.toggle("long", isLong)
    this.open(isLong ? this.steps[this.at].tensors : this.tensors.map((tensor) => tensor.number), true)
    this.fit()
    this.list.onpointerover = (event) => this.point(event.target)
    this.list.onpointerleave = () => this.rest()
    this.list.onkeydown = (event) => this.key(event)
    this.list.onfocusin = (event) => event.target.at && event.target.matches(":focus-visible") && this.show(event.target.at)
    this.list.onfocusout = () => this.rest()
  }

  // A tensor with the cell of each element that is drawn, and the reverse.
  located(tensor, number) {
    const made = { ...tensor, number, isOpen: false, nodes: [], ...this.places(tensor) }
    this.storages[tensor.storage].tensors.push(made)
    return made
  }

  places({ shape, stride, offset, drawn }) {
    const cells = new Array(drawn)
    const index = new Array(shape.length).fill(0)
    let cell = offset
    for (let k = 0; k < drawn; k++) {
      cells[k] = cell
      for (let d = shape.length - 1; d >= 0; d--) {
        index[d]++
        cell += stride[d]
        if (index[d] < shape[d]) break
        cell -= index[d] * stride[d]
        index[d] = 0
      }
    }
    const elementsAt = new Map()
    cells.forEach((at, k) => {
      const here = elementsAt.get(at)
      if (here) here.push(k)
      else elementsAt.set(at, [k])
    })
    return { cells, elementsAt }
  }

  value(tensor, cell) {
    const { now, total } = this.storages[tensor.storage].readings[tensor.reading]
    return cell < 0 || cell >= total ? "✕" : now[cell] ?? "…"
  }

  // -------------------------------------------------------------------------------------------- storages and strips

  storage(storage) {
    const section = (storage.section = make("section", `storage s${storage.number % 4}`))
    for (const reading of storage.readings) reading.now = [...reading.values]
    const head = make("div", "head", make("h3", "", `Storage ${storage.letter}`), make("span", "", storage.title))
    if (storage.made) head.append(make("span", "", "made by ", make("code", "", storage.made)))
    storage.reads = make("span", "reads")
    head.append(storage.reads)
    section.append(head)
    storage.box = make("div", "memory")
    section.append(storage.box)
    section.append((storage.cards = make("div", "cards")))
    return section
  }

  // The strips for the present width; the grids below do not depend on it.
  fit() {
    const width = this.root.clientWidth || 900
    if (width === this.width) return
    this.width = width
    this.refit()
  }

  refit() {
    this.lit = []
    for (const tensor of this.tensors) if (tensor.nodes[0]) delete tensor.nodes[0].closest(".scroll").scrolls
    for (const storage of this.storages) {
      if (storage.section.hidden || storage.fitted === this.width) continue
      storage.fitted = this.width
      storage.shown = null
      storage.strips = storage.readings.map((reading, number) => this.strip(storage, reading, number))
      storage.box.replaceChildren(...storage.strips.map((strip) => strip.figure))
    }
    this.active = -1
    this.go(this.at)
  }

  strip(storage, reading, number) {
    const count = reading.values.length
    const length = Math.max(reading.widest, String(Math.max(count - 1, 0)).length)
    const dense = count > DENSE_STRIP
    const roomy = count <= 16 && length < 5
    const numbered = dense || (count > 48 && count * narrow(length) > this.width - INDENT)
    const width = this.width - INDENT - (numbered ? 48 : 2)
    const pitch = dense ? TINY : roomy ? 48 : Math.max(narrow(length), Math.min(30, Math.floor(width / Math.max(count, 1))))
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
      if (used.size < count) strip.note = "dashed: read by no tensor here"
    }
    const scroll = make("div", "scroll", grid)
    this.walkable(scroll, strip, "row of cells", `Storage ${storage.letter}${number ? ` read as ${reading.dtype}` : ""}`)
    strip.figure = make("figure", "")
    if (storage.readings.length > 1) strip.figure.append(make("figcaption", "", number ? `the same bytes read as ${reading.dtype}` : `read as ${reading.dtype}`))
    strip.figure.append(svg, scroll)
    if (strip.note) strip.figure.append(make("figcaption", "", strip.note))
    if (count < reading.total)
      strip.figure.append(make("figcaption", "", count ? `first ${count.toLocaleString("en")} of ${reading.total.toLocaleString("en")} cells are drawn` : `${reading.total.toLocaleString("en")} cells, counted and not made`))
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
      said = `= cell ${[source.offset, ...hops.map((hop) => hop.text)].join(" + ")} = ${offset}`
    } else if (wanted) hops = wanted.steps.map((by, i) => ({ from: wanted.cells[i], to: wanted.cells[i + 1], text: signed(by) }))
    else if (total > 0)
      hops = shape
        .map((size, d) => ({ size, from: offset, to: offset + stride[d], text: way(d, shape.length) + signed(stride[d]) }))
        .filter((hop) => hop.size > 1)
    const one = wanted ? "would step " : hops.length ? "one step: " : ""
    said ||= one + hops.map((hop) => hop.text).join(wanted ? ", " : "  ")
    const shared = strip.marked.some((node) => node.under?.dataset.times)
    strip.storage.reads.replaceChildren(
      make("code", "", tensor.name),
      make("span", wanted ? "broken" : "", ` ${said}`),
      ...(shared ? [make("span", "key", "×n: n of its elements in one cell")] : []),
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

  // ------------------------------------------------------------------------------------------------------- tensors

  card(tensor) {
    const card = make("figure", `card${tensor.hops ? " want" : ""}`)
    const title = make("figcaption", "", make("code", "source", tensor.name))
    if (tensor.word) title.append(make("span", `badge ${tensor.kind}`, icon(tensor.kind), tensor.word))
    const facts = make("div", "facts")
    for (const [text, strong] of tensor.facts) facts.append(make("span", strong || "", make("b", "", text)))
    tensor.told = make("div", "verdict")
    tensor.told.setAttribute("role", "status")
    tensor.box = make("div", "scroll")
    tensor.rest = make("p", "rest")
    card.append(title, ...(tensor.hops ? [] : [layoutFields(tensor, this)]), facts, tensor.told, tensor.box, tensor.rest)
    card.onpointerenter = () => this.activate(tensor.number)
    this.elements(tensor)
    return card
  }

  // The grid of a tensor, for the layout that it has or that is tried on it.
  elements(tensor) {
    const { shape, drawn, total, box } = tensor
    const wanted = Boolean(tensor.hops)
    const dense = drawn > DENSE
    const across = shape.length ? shape[shape.length - 1] : 1
    const { widest } = this.storages[tensor.storage].readings[tensor.reading]
    const length = dense ? 1 : Math.min(widest, Math.max(longest(tensor.cells.map((cell) => this.value(tensor, cell))), this.steps.some((step) => step.kind === "write") ? widest : 1))
    const roomy = drawn <= 16 && length < 5
    tensor.pitch = dense ? Math.min(Math.max(Math.floor(384 / Math.max(across, drawn / across)), TINY), 14) : roomy ? 40 : Math.max(26, 9 + 8 * length)
    tensor.nodes = []
    this.rove.delete(tensor)
    box.className = `scroll grids${dense ? " dense" : roomy ? " roomy" : ""}`
    if (!drawn) box.replaceChildren(make("p", "empty", total ? `${total.toLocaleString("en")} elements, too many to draw` : "no elements"))
    else {
      box.replaceChildren(this.nest(tensor, wanted ? tensor.hops.shape : shape, 0, { k: 0 }))
      this.walkable(box, tensor, "grid of elements", `Elements of ${tensor.name}`)
    }
    tensor.rest.textContent = drawn && drawn < total ? `first ${drawn.toLocaleString("en")} of ${total.toLocaleString("en")} elements are drawn` : ""
  }

  // Draw a tensor as another layout would read its storage, and ask what torch has that gives it.
  attempt(tensor, layout) {
    tensor.real ||= { shape: tensor.shape, stride: tensor.stride, offset: tensor.offset }
    const total = layout.shape.reduce((product, size) => product * size, 1)
    tensor.large ??= !tensor.drawn && tensor.total > 0
    Object.assign(tensor, layout, { total, drawn: tensor.large ? 0 : Math.min(total, this.most) })
    Object.assign(tensor, this.places(tensor))
    tensor.trying = !same(layout, tensor.real)
    tensor.card.classList.toggle("trying", tensor.trying)
    this.elements(tensor)
    this.storages[tensor.storage].shown = null
    this.active = -1
    this.home = tensor.number
    this.go(this.at)
    clearTimeout(this.asking)
    tensor.told.replaceChildren()
    if (tensor.trying) this.asking = setTimeout(() => this.root.ask({ tensor: tensor.number, ...layout }), 150)
  }

  // What core says of the layout that is tried.
  judge(verdict) {
    const tensor = verdict && this.tensors[verdict.tensor]
    if (tensor?.trying && same(tensor, verdict)) tensor.told.replaceChildren(...judged(verdict, (code) => this.root.fix(code), () => tensor.back()))
  }

  // Dimensions from the right: columns, rows, then blocks side by side, blocks of those one below the other, and so on.
  nest(tensor, shape, d, from) {
    const left = shape.length - d
    if (left <= 2) return this.grid(tensor, shape, from)
    const box = make("div", `nest ${left % 2 ? "across" : "down"}`)
    for (let i = 0; i < shape[d] && from.k < tensor.drawn; i++)
      box.append(make("div", "block", make("small", "", `i${subscript(d)} = ${i}`), this.nest(tensor, shape, d + 1, from)))
    return box
  }

  grid(tensor, shape, from) {
    const rank = shape.length
    // A long vector is broken into lines; everything else keeps its rows.
    const columns = rank === 1 ? Math.min(shape[0], Math.floor(800 / tensor.pitch)) : rank ? shape[rank - 1] : 1
    const rows = rank === 1 ? Math.ceil(shape[0] / Math.max(columns, 1)) : rank > 1 ? shape[rank - 2] : 1
    const grid = make("div", "grid")
    grid.style.gridTemplateColumns = `repeat(${Math.max(columns, 1)}, ${tensor.pitch}px)`
    if (tensor.drawn > DENSE) grid.style.gridAutoRows = `${tensor.pitch}px`
    const { hops } = tensor
    const total = this.storages[tensor.storage].readings[tensor.reading].total
    const dense = tensor.drawn > DENSE
    for (let n = rows * columns; n > 0 && from.k < tensor.drawn; n--, from.k++) {
      const cell = tensor.cells[from.k]
      const node = make("div", "c", dense ? "" : this.value(tensor, cell))
      node.at = { tensor, k: from.k }
      node.style.setProperty("--p", shade(cell, total))
      if (cell < 0 || cell >= total) node.classList.add("beyond")
      if (hops && hops.elements.includes(from.k)) node.classList.add("hop")
      tensor.nodes.push(node)
      grid.append(node)
    }
    return grid
  }

  // ------------------------------------------------------------------------------------------- pointer and keyboard

  // One cell of every grid and strip is in the tab order: the one last visited, at first the first.
  walkable(scroll, owner, kind, label) {
    scroll.setAttribute("role", "application")
    scroll.setAttribute("aria-roledescription", kind)
    scroll.setAttribute("aria-label", `${label}; arrow keys move`)
    if (owner.nodes[0]) this.tabStop(owner, 0)
  }

  tabStop(owner, k) {
    const before = this.rove.get(owner)
    if (before !== undefined && owner.nodes[before]) owner.nodes[before].removeAttribute("tabindex")
    this.rove.set(owner, k)
    const node = owner.nodes[k]
    node.tabIndex = 0
    node.setAttribute("role", "img")
    node.setAttribute("aria-roledescription", owner.cells ? "element" : "cell")
    node.setAttribute("aria-label", owner.cells ? this.sentence(owner, k).join("") : this.cellSentence(owner, k).join(""))
    return node
  }

  key(event) {
    const at = event.target.at
    if (!at || event.altKey || event.ctrlKey || event.metaKey) return
    const owner = at.tensor || at.strip
    const shape = at.tensor ? at.tensor.hops?.shape || at.tensor.shape : null
    const row = shape ? (shape.length > 1 ? shape[shape.length - 1] : 1) : at.strip.columns
    const block = shape && shape.length > 2 ? row * shape[shape.length - 2] : row
    const last = owner.nodes.length - 1
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, PageDown: block, PageUp: -block, Home: -last, End: last }
    if (!(event.key in moves)) return
    event.preventDefault()
    const k = Math.min(Math.max((at.k ?? at.cell) + moves[event.key], 0), last)
    const node = this.tabStop(owner, k)
    node.focus({ preventScroll: true })
    this.show(node.at)
    reveal(node)
  }

  point(target) {
    const at = target.at
    if (!at) return
    this.show(at)
    const here = target.closest(".scroll")
    // Reading positions forces a layout, so only boxes that can scroll are looked at.
    for (const other of this.lit) {
      const box = other.closest(".scroll")
      if (box !== here && box.scrolls !== false) reveal(other)
    }
  }

  // Nothing is pointed at: the chosen tensor's strides, and the hint.
  rest() {
    this.dim()
    this.say(this.account())
    this.activate(this.home)
  }

  dim() {
    for (const node of this.lit) node.classList.remove("lit")
    this.lit = []
  }

  // Light bytes of one storage wherever they are drawn. Readings of a storage may count in different element sizes.
  light(storage, first, end) {
    this.dim()
    for (const strip of storage.strips) {
      const { item } = strip.reading
      for (let cell = Math.floor(first / item); cell * item < end; cell++) if (strip.nodes[cell]) this.lit.push(strip.nodes[cell])
    }
    for (const tensor of storage.tensors) {
      const { item } = storage.readings[tensor.reading]
      for (let cell = Math.floor(first / item); cell * item < end; cell++)
        for (const k of tensor.elementsAt.get(cell) || []) if (tensor.nodes[k]) this.lit.push(tensor.nodes[k])
    }
    for (const node of this.lit) node.classList.add("lit")
  }

  show(at) {
    const tensor = at.tensor
    const storage = tensor ? this.storages[tensor.storage] : at.strip.storage
    const cell = tensor ? tensor.cells[at.k] : at.cell
    const { item } = tensor ? storage.readings[tensor.reading] : at.strip.reading
    if (tensor) this.activate(tensor.number)
    this.light(storage, cell * item, (cell + 1) * item)
    this.say(tensor ? this.sentence(tensor, at.k) : this.cellSentence(at.strip, at.cell))
  }

  // Every other part is emphasised, starting with the first.
  sentence(tensor, k) {
    const cell = tensor.cells[k]
    const letter = this.storages[tensor.storage].letter
    const name = tensor.name.length > 30 ? `…${tensor.name.slice(-28)}` : tensor.name
    if (tensor.hops) return [`element ${k}`, ` of ${tensor.before} is in cell `, `${cell}`, ` of storage ${letter}, value `, this.value(tensor, cell)]
    const index = indices(tensor.shape, k)
    const names = ["offset", ...index.map((_, d) => `i${subscript(d)}·s${subscript(d)}`)].join(" + ")
    const sum = [tensor.offset, ...index.map((i, d) => `${i}·${tensor.stride[d]}`)].join(" + ")
    const rule = index.length && index.length < 4 ? `: ${names} = ` : index.length ? ": " : " "
    const equals = index.length ? " = " : ""
    return [name + bracketed(index), rule, index.length ? sum : "", `${equals}cell `, `${cell}`, ` of storage ${letter}, value `, this.value(tensor, cell)]
  }

  cellSentence(strip, cell) {
    const { storage, reading, number } = strip
    const names = []
    for (const tensor of storage.tensors) {
      if (tensor.reading !== number || tensor.hops) continue
      for (const k of (tensor.elementsAt.get(cell) || []).slice(0, 2)) names.push(tensor.name + bracketed(indices(tensor.shape, k)))
    }
    const bytes = reading.item > 1 ? `bytes ${cell * reading.item} to ${(cell + 1) * reading.item - 1}` : `byte ${cell}`
    const parts = [`cell ${cell}`, ` of storage ${storage.letter}, ${bytes}, value `, reading.values[cell]]
    if (names.length) parts.push(": ", [...new Set(names)].slice(0, 4).join(" and "))
    return parts
  }

  say(parts) {
    const text = parts.join("")
    if (text === this.said) return
    this.said = text
    this.readout.replaceChildren(...parts.map((part, i) => make(i % 2 || parts.length === 1 ? "span" : "b", "", part)))
  }
}

// Scroll the box around a cell, never the page, until the cell is in sight.
function reveal(node) {
  const box = node.closest(".scroll")
  box.scrolls = box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth
  if (!box.scrolls) return
  const [outer, inner] = [box.getBoundingClientRect(), node.getBoundingClientRect()]
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom
  if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left
  else if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right
}
