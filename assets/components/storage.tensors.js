// For storage.js: a tensor as nested grids, also for a layout that is tried on it.

const DENSE = 400 // a tensor of more elements is drawn as small squares, whose values are read by pointing

class Tensors extends Strips {
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

  card(tensor) {
    const card = make("figure", `card${tensor.hops ? " want" : ""}`)
    const title = make("figcaption", "", make("code", "source", tensor.name))
    if (tensor.word) title.append(make("span", `badge ${tensor.kind}`, icon(tensor.kind), tensor.word))
    const facts = make("div", "facts")
    for (const [text, strong] of tensor.facts) facts.append(make("span", strong || "", make("b", "", text)))
    tensor.told = make("div", "tried")
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
    if (!drawn) box.replaceChildren(make("p", "empty", total ? fill(this.texts.too_many, { total: counted(total) }) : this.texts.none))
    else {
      box.replaceChildren(this.nest(tensor, wanted ? tensor.hops.shape : shape, 0, { k: 0 }))
      this.walkable(box, tensor, this.texts.grid, fill(this.texts.elements, tensor))
    }
    tensor.rest.textContent = drawn && drawn < total ? fill(this.texts.first_elements, { count: counted(drawn), total: counted(total) }) : ""
  }

  // Draw a tensor as another layout would read its storage.
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
    tensor.told.replaceChildren(...(tensor.trying ? tried(tensor, layout, this.texts) : []))
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
}
