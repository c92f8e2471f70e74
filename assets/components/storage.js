// Every step of a trace: its storage as a strip of cells, its tensor as a grid. Pointing at one element lights the
// same memory in every strip and grid; arrow keys do so from a focused grid. All text is set with textContent.
const HINT =
  "Point at a cell: its memory lights up everywhere (keyboard: Tab, then arrows). Arcs are strides: → next column, ↓ next row."
const RISE = 20 // pixels between one height of arcs and the next

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const drawn = JSON.stringify(data)
  if (root.drawn !== drawn) {
    root.drawn = drawn
    root.picture = new Picture(root, data.steps)
  }
  if (!root.watching) {
    root.watching = new ResizeObserver(() => root.picture.fit())
    root.watching.observe(root)
  }
}

function make(tag, className, text) {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined) element.textContent = text
  return element
}

function vector(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  if (text !== undefined) element.textContent = text
  return element
}

const bracketed = (numbers) => (numbers.length ? `[${numbers.join(", ")}]` : "")
const signed = (number) => (number < 0 ? `−${-number}` : `+${number}`)
const longest = (texts) => texts.reduce((most, text) => Math.max(most, text.length), 1)

// How a step in dimension d shows in the grid: right within a row, down between rows.
const way = (d, rank) => (d === rank - 1 ? "→" : d === rank - 2 ? "↓" : `dim ${d} `)

// Width of the narrowest cell for a text of this length at 12 px.
const narrow = (length) => Math.ceil(3.4 + 7.2 * Math.max(length, 2))

// Ink of the k-th of n elements: the storage strip then shows in which order the tensor reads its cells.
const shade = (k, n) => Math.round(10 + (n > 1 ? (34 * k) / (n - 1) : 14))

// Indices of the element with logical (row-major) number k.
function indices(shape, k) {
  const index = new Array(shape.length)
  for (let d = shape.length - 1; d >= 0; d--) {
    index[d] = k % shape[d]
    k = Math.floor(k / shape[d])
  }
  return index
}

// A tensor with the cell of each drawn element, and the reverse.
function located(tensor) {
  const { shape, stride, offset, values } = tensor
  const cells = values.map((_, k) => indices(shape, k).reduce((sum, i, d) => sum + i * stride[d], offset))
  const elementsAt = new Map()
  cells.forEach((cell, k) => {
    if (elementsAt.has(cell)) elementsAt.get(cell).push(k)
    else elementsAt.set(cell, [k])
  })
  return { ...tensor, cells, elementsAt, nodes: [], cursor: 0 }
}

// Columns so that a strip has even lines, each of whole rows of the tensor or whole parts of one.
function fitColumns(count, most, row) {
  if (count <= most) return count
  let unit = row
  for (let parts = 2; unit > most; parts++) if (row % parts === 0) unit = row / parts
  if (unit * 3 < most && row > most) unit = 1
  for (let lines = Math.ceil(count / most); ; lines++) {
    const columns = Math.ceil(count / lines / unit) * unit
    if (columns <= most) return columns
  }
}

class Picture {
  constructor(root, steps) {
    this.root = root
    this.steps = steps.map((step) => ({ ...step, tensors: step.tensors.map(located), nodes: [] }))
    this.lit = []
    this.readout = make("p", "readout", HINT)
    this.readout.setAttribute("role", "status")
    this.list = make("div", "steps")
    root.replaceChildren(this.readout, this.list)
    this.width = 0
    this.fit()
    this.list.onpointerover = (event) => this.point(event.target.closest(".c"))
    this.list.onpointerleave = () => this.clear()
  }

  // Draw for the present width, again when it has changed.
  fit() {
    const width = this.root.clientWidth || 900
    if (width === this.width) return
    this.width = width
    this.lit = []
    this.list.replaceChildren(...this.steps.map((step) => this.step(step)))
  }

  step(step) {
    const block = make("section", `step s${step.storage % 4}`)
    const head = make("div", "head")
    head.append(make("code", "source", step.source), make("span", `badge ${step.kind}`, step.word))
    const facts = make("div", "facts")
    for (const [name, value] of step.facts) {
      const fact = make("span", "", name ? `${name} ` : "")
      fact.append(make("b", "", value))
      facts.append(fact)
    }
    head.append(facts)
    block.append(head)
    if (step.error) block.append(make("p", "error", step.error))
    if (step.merge && step.merge.dims.length > 1) block.append(this.merge(step.merge))
    if (step.kind === "refused" && !step.wanted) return block // nothing new to draw
    const pictures = make("div", "pictures")
    pictures.append(this.strip(step), ...step.tensors.map((tensor) => this.tensor(step, tensor)))
    block.append(pictures)
    return block
  }

  // -------------------------------------------------------------------------------------------- storage strip

  strip(step) {
    const { strip, wanted } = step
    const [tensor] = step.tensors
    const count = strip.values.length
    const length = Math.max(longest(strip.values), String(count - 1).length)
    const roomy = count <= 16 && length < 4
    const numbered = count * narrow(length) > this.width && count > 64
    const width = this.width - (numbered ? 48 : 2)
    const pitch = roomy ? 48 : Math.max(narrow(length), Math.min(26, Math.floor(width / count)))
    const columns = fitColumns(count, Math.floor(width / pitch), Math.max(strip.row, 1))
    const broken = columns < count
    const figure = make("figure", roomy ? "memory roomy" : "memory")
    if (!broken) figure.append(this.arcs(step, pitch, count))
    const grid = make("div", "strip")
    grid.style.gridTemplateColumns = `${numbered ? "max-content " : ""}repeat(${columns || 1}, ${pitch}px)`
    step.nodes = strip.values.map((value, cell) => {
      const elements = tensor.elementsAt.get(cell) || []
      const node = make("div", elements.length ? "c in" : "c out", value)
      node.at = { step, cell }
      if (elements.length) node.style.setProperty("--p", shade(elements[0], tensor.values.length))
      if (elements.length > 1 && roomy) node.dataset.times = `×${elements.length}`
      if (step.written.includes(cell)) node.classList.add("written")
      if (wanted && wanted.cells.includes(cell)) node.classList.add("hop")
      if (numbered) {
        if (cell % columns === 0) grid.append(make("div", "line", cell))
        grid.append(node)
      } else {
        const slot = make("div")
        slot.append(node, make("div", "o", cell))
        grid.append(slot)
      }
      return node
    })
    const scroll = make("div", "scroll")
    scroll.append(grid)
    if (numbered) {
      scroll.tabIndex = 0
      scroll.setAttribute("role", "group")
      scroll.setAttribute("aria-label", `Storage ${strip.name}`)
    }
    figure.append(scroll)
    const cells = strip.total === 1 ? "1 cell" : `${strip.total} cells`
    const seen = count < strip.total ? `first ${count} of ${cells}` : cells
    figure.append(make("figcaption", "", `Storage ${strip.name}: ${seen} × ${strip.item} B = ${strip.size}`))
    return figure
  }

  // Strides as hops from the first element to its neighbour in each dimension; for a refused view, the hops it needs.
  arcs(step, pitch, count) {
    const { wanted } = step
    const { shape, stride, offset, total } = step.tensors[0]
    let hops = []
    if (wanted) {
      hops = wanted.steps.map((by, i) => ({ from: wanted.cells[i], to: wanted.cells[i + 1], text: signed(by) }))
    } else if (total > 0) {
      hops = shape
        .map((size, d) => ({ size, from: offset, to: offset + stride[d], text: way(d, shape.length) + signed(stride[d]) }))
        .filter((hop) => hop.size > 1 && hop.to !== hop.from)
    }
    hops = hops.filter((hop) => hop.from < count && hop.to < count)
    const spans = [...new Set(hops.map((hop) => Math.abs(hop.to - hop.from)))].sort((a, b) => a - b)
    const height = hops.length ? 14 + RISE * spans.length : 0
    const svg = vector("svg", { width: count * pitch, height, "aria-hidden": "true" })
    if (wanted) svg.setAttribute("class", "broken")
    const labels = []
    for (const hop of hops) {
      const rise = RISE * (spans.indexOf(Math.abs(hop.to - hop.from)) + 1) - 8
      const [a, b] = [hop.from, hop.to].map((cell) => (cell + 0.5) * pitch)
      const end = height - 1
      svg.append(
        vector("path", { d: `M ${a} ${end} A ${Math.abs(b - a) / 2} ${rise} 0 0 ${b > a ? 1 : 0} ${b} ${end}` }),
        vector("path", { d: `M ${b - 3.5} ${end - 6} L ${b} ${end} L ${b + 3.5} ${end - 6}` }),
      )
      labels.push(vector("text", { x: (a + b) / 2, y: end - rise - 4 }, hop.text))
    }
    svg.append(...labels)
    return svg
  }

  // -------------------------------------------------------------------------------------------------- tensors

  tensor(step, tensor) {
    const wanted = step.wanted
    const shape = wanted ? wanted.shape : tensor.shape
    const columns = shape.length ? shape[shape.length - 1] : 1
    const rows = shape.length > 1 ? shape[shape.length - 2] : 1
    const length = longest(tensor.values)
    const roomy = tensor.values.length <= 16 && length < 4
    const pitch = roomy ? 40 : Math.max(26, 9 + 8 * length)
    const figure = make("figure", `tensor s${tensor.storage % 4}${wanted ? " want" : ""}${roomy ? " roomy" : ""}`)
    const blocks = make("div", "scroll blocks")
    let grid = null
    tensor.nodes = tensor.values.map((value, k) => {
      if (k % (rows * columns) === 0) {
        const block = make("div", "block")
        if (shape.length > 2) block.append(make("small", "", bracketed([...indices(shape, k).slice(0, -2), ":", ":"])))
        grid = make("div", "grid")
        grid.style.gridTemplateColumns = `repeat(${columns}, ${pitch}px)`
        block.append(grid)
        blocks.append(block)
      }
      const node = make("div", "c in", value)
      node.at = { step, tensor, element: k }
      node.style.setProperty("--p", shade(k, tensor.values.length))
      if (wanted && wanted.elements.includes(k)) node.classList.add("hop")
      if (tensor.storage === step.storage && step.written.includes(tensor.cells[k])) node.classList.add("written")
      grid.append(node)
      return node
    })
    figure.append(blocks)
    let name = wanted ? `asked for: shape (${shape.join(", ")}), which no strides can give` : tensor.name
    if (tensor.note) name += `, ${tensor.note}`
    if (!tensor.total) name += ": no elements"
    if (tensor.values.length < tensor.total) name += `, first ${tensor.values.length} of ${tensor.total} elements`
    figure.append(make("figcaption", "", name))
    if (tensor.values.length) {
      blocks.tabIndex = 0
      blocks.setAttribute("role", "application")
      blocks.setAttribute("aria-label", `Elements of ${tensor.name}; arrow keys move between them`)
      blocks.onkeydown = (event) => this.key(event, step, tensor, shape.length > 1 ? columns : 1)
      blocks.onfocus = () => blocks.matches(":focus-visible") && this.show(step, tensor, tensor.cursor)
      blocks.onblur = () => this.clear()
    }
    return figure
  }

  merge({ dims, joints, breaks }) {
    const row = make("div", "merge")
    row.append(make("em", "", "Merging:"))
    dims.forEach(({ dim, size, stride }, i) => {
      if (i) {
        const { merged, text } = joints[i - 1]
        row.append(make("span", `joint${merged ? " merged" : ""}${i - 1 === breaks ? " broken" : ""}`, text))
      }
      row.append(make("span", "dim", `dim ${dim}: size ${size}, stride ${stride}`))
    })
    return row
  }

  // -------------------------------------------------------------------------------------- pointer and keyboard

  key(event, step, tensor, row) {
    const last = tensor.nodes.length - 1
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -last, End: last }
    if (!(event.key in moves)) return
    event.preventDefault()
    tensor.cursor = Math.min(Math.max(tensor.cursor + moves[event.key], 0), last)
    this.show(step, tensor, tensor.cursor)
    reveal(tensor.nodes[tensor.cursor])
  }

  point(node) {
    if (!node) return
    const { step, tensor, element, cell } = node.at
    if (tensor) this.show(step, tensor, element)
    else this.showCell(step, cell)
    for (const other of this.lit) if (other.closest(".scroll") !== node.closest(".scroll")) reveal(other)
  }

  clear() {
    for (const node of this.lit) node.classList.remove("lit")
    this.lit = []
    this.readout.textContent = HINT
  }

  // Light the bytes of one cell of one storage wherever they are drawn. Strips may count in different element sizes.
  light(storage, first, end) {
    for (const node of this.lit) node.classList.remove("lit")
    this.lit = []
    for (const step of this.steps) {
      const item = step.strip.item
      for (let cell = Math.floor(first / item); cell * item < end; cell++) {
        if (step.storage === storage && step.nodes[cell]) this.lit.push(step.nodes[cell])
        for (const tensor of step.tensors) {
          if (tensor.storage !== storage) continue
          for (const k of tensor.elementsAt.get(cell) || []) if (tensor.nodes[k]) this.lit.push(tensor.nodes[k])
        }
      }
    }
    for (const node of this.lit) node.classList.add("lit")
  }

  show(step, tensor, k) {
    const { item } = step.strip
    const index = indices(tensor.shape, k)
    const cell = tensor.cells[k]
    this.light(tensor.storage, cell * item, (cell + 1) * item)
    const sum = [tensor.offset, ...index.map((i, d) => `${i}·${tensor.stride[d]}`)].join(" + ")
    const where = index.length ? ` is in cell ${sum} = ` : " is in cell "
    this.say([tensor.name + bracketed(index), where, `${cell}`, ", value ", tensor.values[k]])
  }

  showCell(step, cell) {
    const { storage, strip } = step
    this.light(storage, cell * strip.item, (cell + 1) * strip.item)
    const names = new Set()
    for (const other of this.steps) {
      if (other.kind === "refused" || other.strip.item !== strip.item) continue
      for (const tensor of other.tensors) {
        if (tensor.storage !== storage) continue
        for (const k of (tensor.elementsAt.get(cell) || []).slice(0, 2)) names.add(tensor.name + bracketed(indices(tensor.shape, k)))
      }
    }
    const parts = [`cell ${cell}`, ` of storage ${strip.name}, value `, strip.values[cell]]
    if (names.size) parts.push(", seen as ", [...names].slice(0, 4).join(", "))
    this.say(parts)
  }

  // Every other part is emphasised, starting with the first.
  say(parts) {
    this.readout.replaceChildren(...parts.map((part, i) => make(i % 2 ? "span" : "b", "", part)))
  }
}

// Scroll the box around a cell, never the page, until the cell is in sight.
function reveal(node) {
  const box = node.closest(".scroll")
  const [outer, inner] = [box.getBoundingClientRect(), node.getBoundingClientRect()]
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom
  if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left
  else if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right
}
