// For storage.js: pointing at an element, or walking to it with the arrow keys, lights its bytes wherever they are drawn.

class Pointing {
  // One cell of every grid and strip is in the tab order: the one last visited, at first the first.
  walkable(scroll, owner, kind, label) {
    scroll.setAttribute("role", "application")
    scroll.setAttribute("aria-roledescription", kind)
    scroll.setAttribute("aria-label", fill(this.texts.arrows, { what: label }))
    if (owner.nodes[0]) this.tabStop(owner, 0)
    scroll.onscroll = () => edges(scroll, owner.nodes.length, this.texts)
    scroll.sized?.disconnect()
    scroll.sized = new ResizeObserver(scroll.onscroll)
    scroll.sized.observe(scroll)
  }

  tabStop(owner, k) {
    const before = this.rove.get(owner)
    if (before !== undefined && owner.nodes[before]) owner.nodes[before].removeAttribute("tabindex")
    this.rove.set(owner, k)
    const node = owner.nodes[k]
    node.tabIndex = 0
    node.setAttribute("role", "img")
    node.setAttribute("aria-roledescription", owner.cells ? this.texts.element : this.texts.cell)
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
    if (tensor.hops) return parts(this.texts.of_needed, { k, tensor: tensor.before, cell, letter, value: this.value(tensor, cell) })
    const index = indices(tensor.shape, k)
    const names = [this.texts.field_offset, ...index.map((_, d) => `i${subscript(d)}·s${subscript(d)}`)].join(" + ")
    const sum = [tensor.offset, ...index.map((i, d) => `${i}·${tensor.stride[d]}`)].join(" + ")
    const rule = index.length && index.length < 4 ? `: ${names} = ` : index.length ? ": " : " "
    const equals = index.length ? " = " : ""
    return parts(this.texts.of_element, { place: name + bracketed(index), rule, sum: index.length ? sum : "", equals, cell, letter, value: this.value(tensor, cell) })
  }

  cellSentence(strip, cell) {
    const { storage, reading, number } = strip
    const names = []
    for (const tensor of storage.tensors) {
      if (tensor.reading !== number || tensor.hops) continue
      for (const k of (tensor.elementsAt.get(cell) || []).slice(0, 2)) names.push(tensor.name + bracketed(indices(tensor.shape, k)))
    }
    const { item, values } = reading
    const bytes = fill(item > 1 ? this.texts.bytes : this.texts.byte, { first: cell * item, last: (cell + 1) * item - 1 })
    const said = parts(this.texts.of_cell, { cell, letter: storage.letter, bytes, value: values[cell] })
    if (names.length) said.push(": ", [...new Set(names)].slice(0, 4).join(` ${this.texts.and} `))
    return said
  }

  say(said) {
    const text = said.join("")
    if (text === this.said) return
    this.said = text
    this.readout.replaceChildren(...said.map((part, i) => make(i % 2 || said.length === 1 ? "span" : "b", "", part)))
  }
}

// Where a box goes on beyond what is in sight: its edge is drawn, and a line under it says how much there is.
function edges(box, count, texts) {
  const cut = {
    left: box.scrollLeft > 1,
    right: box.scrollWidth - box.clientWidth - box.scrollLeft > 1,
    up: box.scrollTop > 1,
    down: box.scrollHeight - box.clientHeight - box.scrollTop > 1,
  }
  const ways = Object.keys(cut).filter((way) => cut[way])
  box.dataset.cut = ways.join(" ")
  if (!ways.length) return box.more?.remove()
  box.more ||= make("small", "more")
  box.more.textContent = fill(texts.more, { count: counted(count), ways: ways.map((way) => texts[way]).join(` ${texts.and} `) })
  box.after(box.more)
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
