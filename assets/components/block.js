// A block of values as bars, what was asked as an outline and what comes back filled. Drag a bar, or focus it and use
// the arrow keys, to change its value; the server then quantises the block again.
const blocks = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  let block = blocks.get(root)
  if (!block || block.bars.length !== data.values.length) {
    block = { ...build(root, data.values.length), here: block?.here ?? 0, dragging: null }
    block.here = Math.min(block.here, data.values.length - 1)
    blocks.set(root, block)
  }
  const top = data.top
  const place = value => 50 - 50 * Math.max(-1, Math.min(1, value / top))
  const draw = (i, value, back) => {
    const { bar, asked, kept, out } = block.bars[i]
    span(asked, place(value))
    span(kept, place(back))
    bar.classList.toggle("clipped", data.clipped[i])
    out.textContent = data.clipped[i] ? "clip" : back === 0 && value !== 0 ? "0" : ""
    bar.setAttribute("aria-valuenow", String(value))
    bar.setAttribute("aria-valuetext", `${short(value)}, comes back as ${short(back)}${data.clipped[i] ? ", clipped" : ""}`)
    bar.setAttribute("aria-valuemin", String(-top))
    bar.setAttribute("aria-valuemax", String(top))
    bar.tabIndex = i === block.here ? 0 : -1
  }
  const say = i => {
    block.detail.textContent = i === null
      ? "Drag a bar, or Tab to it: ← → choose an element, ↑ ↓ change it, Page Up makes it ten times larger."
      : `element ${i}: ${short(data.values[i])} → code ${data.codes[i]} → ${short(data.back[i])}${data.clipped[i] ? " (clipped)" : ""}`
  }
  const send = (i, value) => setTriggerValue("change", { place: i, value: Number(value.toPrecision(4)), seq: Date.now() })
  data.values.forEach((value, i) => {
    const { bar } = block.bars[i]
    if (block.dragging !== i) draw(i, value, data.back[i])
    bar.onpointerenter = () => say(i)
    bar.onpointerleave = () => say(block.focused ? block.here : null)
    bar.onfocus = () => {
      block.bars[block.here].bar.tabIndex = -1
      block.here = i
      block.focused = true
      bar.tabIndex = 0
      say(i)
    }
    bar.onblur = () => { block.focused = false; say(null) }
    bar.onpointerdown = event => {
      bar.setPointerCapture(event.pointerId)
      block.dragging = i
      block.moved = null
      event.preventDefault()
      bar.focus()
    }
    bar.onpointermove = event => {
      if (block.dragging !== i) return
      const box = bar.getBoundingClientRect()
      block.moved = top * (1 - 2 * (event.clientY - box.top) / box.height) * 1.0
      span(block.bars[i].asked, place(block.moved))
      block.detail.textContent = `element ${i}: ${short(block.moved)}`
    }
    bar.onpointerup = bar.onpointercancel = () => {
      if (block.dragging === i && block.moved !== null) send(i, block.moved)
      block.dragging = null
    }
    bar.onkeydown = event => {
      const step = top / 50
      const moves = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: data.values.length - 1 }
      const changes = { ArrowUp: value + step, ArrowDown: value - step, PageUp: value * 10, PageDown: value / 10 }
      if (event.key in moves) block.bars[Math.max(0, Math.min(moves[event.key], data.values.length - 1))].bar.focus()
      else if (event.key in changes) send(i, changes[event.key])
      else return
      event.preventDefault()
    }
  })
  block.top.textContent = short(top)
  block.bottom.textContent = short(-top)
  block.plot.setAttribute("aria-label", data.label)
  say(block.focused ? block.here : null)
}

// A bar from the zero line (50 %) to ``edge`` (percent from the top).
function span(node, edge) {
  node.style.top = `${Math.min(50, edge)}%`
  node.style.height = `${Math.abs(edge - 50)}%`
}

function short(value) {
  if (value === 0) return "0"
  const size = Math.abs(value)
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)))
  return text.replace("-", "−").replace("e+", "e")
}

function build(root, count) {
  const plot = element("div", "plot")
  plot.setAttribute("role", "group")
  const bars = Array.from({ length: count }, (_, i) => {
    const bar = element("div", "bar")
    bar.setAttribute("role", "slider")
    bar.setAttribute("aria-orientation", "vertical")
    bar.setAttribute("aria-label", `element ${i}`)
    const kept = element("span", "kept")
    const asked = element("span", "asked")
    const out = element("span", "out")
    bar.append(kept, asked, out)
    return { bar, kept, asked, out }
  })
  plot.append(...bars.map(b => b.bar))
  const scale = element("div", "scale")
  const top = element("span", "")
  const bottom = element("span", "")
  const zero = element("span", "")
  zero.textContent = "0"
  scale.setAttribute("aria-hidden", "true")
  scale.append(top, zero, bottom)
  const detail = element("p", "detail")
  const frame = element("div", "frame")
  frame.append(scale, plot)
  root.replaceChildren(frame, detail)
  return { bars, detail, top, bottom, plot }
}

function element(tag, name) {
  const made = document.createElement(tag)
  made.className = name
  return made
}
