// A block of values as bars, what was asked as an outline and what comes back filled. Drag a bar, or focus it and use
// the arrow keys, to change its value; the server then quantises the block again.
//
// A change shows at once, and goes out with all others that the server has not answered yet, under a number that only
// grows: however fast the keys, none is lost, and no older answer takes a newer value back.
const LATE = 3000 // ms after which an unanswered change no longer outranks what the server says
const MOST = 1e30
const blocks = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  let block = blocks.get(root)
  if (!block || block.bars.length !== data.values.length) {
    block = { ...build(root, data.values.length), here: block?.here ?? 0, dragging: null, waiting: new Map(), sent: 0 }
    block.here = Math.min(block.here, data.values.length - 1)
    blocks.set(root, block)
  }
  if (data.seq >= block.sent || Date.now() - block.sent > LATE) block.waiting.clear()
  const top = data.top
  const now = i => block.waiting.get(i) ?? data.values[i]
  const place = value => 50 - 50 * Math.max(-1, Math.min(1, value / top))
  const draw = i => {
    const { bar, asked, kept, out } = block.bars[i]
    const value = now(i), back = data.back[i], known = !block.waiting.has(i), clipped = known && data.clipped[i]
    span(asked, place(value))
    span(kept, place(back))
    bar.classList.toggle("clipped", clipped)
    out.textContent = clipped ? "clip" : known && back === 0 && value !== 0 ? short(back) : ""
    bar.setAttribute("aria-valuenow", String(value))
    bar.setAttribute("aria-valuetext", known ? `${short(value)}, stored as ${short(back)}${clipped ? ", clipped" : ""}` : short(value))
    bar.setAttribute("aria-valuemin", String(-top))
    bar.setAttribute("aria-valuemax", String(top))
    bar.tabIndex = i === block.here ? 0 : -1
  }
  const say = i => {
    if (i === null) block.detail.textContent = data.hint
    else if (block.waiting.has(i)) block.detail.textContent = `element ${i}: ${short(now(i))}`
    else block.detail.textContent = `element ${i}: ${short(data.values[i])} → code ${data.codes[i]} → ${short(data.back[i])}${data.clipped[i] ? " (clipped)" : ""}`
  }
  const send = (i, value) => {
    const tidy = Number(Math.max(-MOST, Math.min(MOST, value)).toPrecision(4))
    if (tidy === now(i)) return
    block.waiting.set(i, tidy)
    block.sent = Math.max(Date.now(), block.sent + 1)
    setTriggerValue("change", { values: [...block.waiting], seq: block.sent })
    draw(i)
    say(i)
  }
  data.values.forEach((_, i) => {
    const { bar } = block.bars[i]
    if (block.dragging !== i) draw(i)
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
      block.moved = top * (1 - 2 * (event.clientY - box.top) / box.height)
      span(block.bars[i].asked, place(block.moved))
      block.detail.textContent = `element ${i}: ${short(block.moved)}`
    }
    bar.onpointerup = bar.onpointercancel = () => {
      const moved = block.dragging === i ? block.moved : null
      block.dragging = null
      if (moved !== null) send(i, moved)
    }
    bar.onkeydown = event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const value = now(i), step = stride(value, top)
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

// One arrow press: a unit in the bar's second digit, but no less than about a thousandth of the scale, to get past zero.
function stride(value, top) {
  const unit = size => 10 ** Math.floor(Math.log10(size))
  return Math.max(value === 0 ? 0 : unit(Math.abs(value)) / 10, unit(top / 1000))
}

// A bar from the zero line (50 %) to ``edge`` (percent from the top).
function span(node, edge) {
  node.style.top = `${Math.min(50, edge)}%`
  node.style.height = `${Math.abs(edge - 50)}%`
}

function short(value) {
  if (value === 0) return Object.is(value, -0) ? "−0" : "0"
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
