// An in-place operation on overlapping elements, one write after the other: the tensor, the memory under it, and what
// every cell would be had it been updated once. A slider, two step buttons and Play move through the writes.
const PACE = 420 // ms between two writes while playing

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const drawn = JSON.stringify(data)
  if (root.drawn === drawn) return
  root.drawn = drawn
  clearInterval(root.timer)
  build(root, data)
}

function make(tag, className, text) {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined) element.textContent = text
  return element
}

function build(root, data) {
  const { columns, elements, before, writes, once, torch, sign, texts } = data
  const last = writes.length
  let at = last

  const bar = make("div", "bar")
  const play = make("button", "", texts.play)
  const back = make("button", "", "◀")
  const next = make("button", "", "▶")
  back.setAttribute("aria-label", texts.back)
  next.setAttribute("aria-label", texts.next)
  const slider = make("input")
  Object.assign(slider, { type: "range", min: 0, max: last, value: last })
  slider.setAttribute("aria-label", texts.done)
  const said = make("p", "said")
  said.setAttribute("role", "status")
  for (const button of [play, back, next]) button.type = "button"
  bar.append(play, back, slider, next, said)

  const pictures = make("div", "pictures")
  const tensor = make("figure")
  tensor.append(make("figcaption", "", fill(texts.view, data)))
  const grid = make("div", "grid")
  grid.style.gridTemplateColumns = `repeat(${columns}, ${data.pitch}px)`
  const nodes = elements.map(() => make("div", "c"))
  grid.append(...nodes)
  tensor.append(grid)

  const memory = make("figure")
  memory.append(make("figcaption", "", texts.storage))
  const table = make("div", "memory")
  table.style.gridTemplateColumns = `max-content repeat(${before.length}, ${data.pitch}px)`
  const row = (name, values, className) => {
    const cells = values.map((value) => make("div", `c ${className}`, value))
    table.append(make("div", "name", name), ...cells)
    return cells
  }
  row(texts.cell, before.map((_, cell) => String(cell)), "plain")
  const now = row(texts.now, before, "")
  const times = row(texts.writes, before.map(() => "0"), "plain")
  const want = row(texts.once, once, "plain")
  if (torch.length) row(texts.torch, torch, "plain torch")
  memory.append(table)
  pictures.append(tensor, memory)
  root.replaceChildren(bar, pictures)

  function show() {
    const values = [...before]
    const count = before.map(() => 0)
    for (const [cell, , after] of writes.slice(0, at)) {
      values[cell] = after
      count[cell]++
    }
    const here = at ? writes[at - 1] : null
    nodes.forEach((node, k) => {
      node.textContent = values[elements[k]]
      node.className = `c${k < at ? " done" : ""}${k === at - 1 ? " here" : ""}`
    })
    now.forEach((node, cell) => {
      node.textContent = values[cell]
      node.className = `c${here && here[0] === cell ? " here" : ""}${count[cell] > 1 && values[cell] !== once[cell] ? " wrong" : ""}`
      times[cell].textContent = count[cell]
      times[cell].className = `c plain${count[cell] > 1 ? " many" : ""}`
      want[cell].className = `c plain${at === last && values[cell] !== once[cell] ? " miss" : ""}`
    })
    slider.value = at
    back.disabled = at === 0
    next.disabled = at === last
    if (!here) said.textContent = fill(texts.before, { last })
    else {
      const index = `[${indices(data.sizes, at - 1).join(", ")}]`
      said.textContent = fill(texts.write, { at, last, index, cell: here[0], before: here[1], sign, after: here[2] })
    }
  }

  function go(to) {
    at = Math.min(Math.max(to, 0), last)
    show()
  }

  function stop() {
    clearInterval(root.timer)
    play.textContent = texts.play
    root.playing = false
  }

  play.onclick = () => {
    if (root.playing) return stop()
    root.playing = true
    play.textContent = texts.stop
    if (at === last) go(0)
    root.timer = setInterval(() => {
      if (!root.isConnected) return stop()
      go(at + 1)
      if (at === last) stop()
    }, PACE)
  }
  back.onclick = () => (stop(), go(at - 1))
  next.onclick = () => (stop(), go(at + 1))
  slider.oninput = () => (stop(), go(Number(slider.value)))
  show()
}

// A sentence of the server with values in place of {names}.
const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name])

// Indices of the element with logical (row-major) number k.
function indices(shape, k) {
  const index = new Array(shape.length)
  for (let d = shape.length - 1; d >= 0; d--) {
    index[d] = k % shape[d]
    k = Math.floor(k / shape[d])
  }
  return index
}
