// The bit strip: every bit of a code as a button. A click, Space or Enter flips it; arrows, Home and End move.
//
// What a bit weighs and what flipping it gives comes from the server. The strip shows a flip at once and sends the
// whole code with a number that only grows, so that however fast one clicks, the last code sent is the one that
// stands; anything older that still arrives from the server is left aside.
const LETTERS = { sign: "S", exponent: "E", fraction: "M" }
const RAISED = /([⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/
const PLAIN = { "⁺": "+", "⁻": "−", "⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9" }
const LATE = 3000 // ms after which an unanswered flip no longer outranks what the server says
const PER_ROW = 32 // bits in a row where a format has more
const strips = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  let strip = strips.get(root)
  if (!strip || strip.data.format !== data.format) {
    strip = build(root, data)
    strips.set(root, strip)
    if (data.still) root.inert = true
  }
  const { bits, state } = strip
  const waiting = () => state.sent > strip.data.seq && Date.now() - state.sent < LATE

  if (data.seq >= state.sent || !waiting()) {
    strip.data = data
    state.code = BigInt(`0x${data.code}`)
  }
  paint()
  step()

  function paint() {
    const code = state.code.toString(2).padStart(bits.length, "0")
    bits.forEach((button, i) => {
      const { field, index, weight } = strip.data.bits[i]
      button.textContent = code[i]
      button.classList.toggle("one", code[i] === "1")
      button.setAttribute("aria-label", `${field} bit${field === "sign" ? "" : ` ${index}`}, weight ${weight}, now ${code[i]}`)
      button.tabIndex = i === state.here ? 0 : -1
    })
    const hex = state.code.toString(16).padStart(strip.hex.length, "0")
    strip.hex.forEach((span, i) => { span.textContent = hex[i] })
    const fresh = state.code === BigInt(`0x${strip.data.code}`)
    ;["below", "above"].forEach(side => {
      const button = strip[side]
      button.disabled = strip.data[side] === null
      button.lastChild.replaceChildren(...(fresh ? raised(strip.data[`${side}_text`]) : ["…"]))
    })
    tell()
  }

  function tell() {
    const i = state.hover ?? (state.focused ? state.here : null)
    if (i === null) {
      strip.detail.textContent = strip.data.hint
      return
    }
    const { field, index, effect, flipped } = strip.data.bits[i]
    const name = document.createElement("b")
    name.className = field
    name.textContent = field === "sign" ? "sign bit" : `${field} bit ${index}`
    // Effect and outcome were computed for the code the server last saw; between a flip and its answer they are old.
    const fresh = state.code === BigInt(`0x${strip.data.code}`)
    strip.detail.replaceChildren(name, ...(fresh ? [" ", ...raised(`${effect} ${flipped}`)] : []))
  }

  function send() {
    state.sent = Math.max(Date.now(), state.sent + 1)
    setTriggerValue("flip", { format: strip.data.format, code: state.code.toString(16), seq: state.sent })
    paint()
  }

  function step() {
    // Steps wait for the server's answer, which knows the neighbors, so each click moves by one value.
    if (!state.steps || waiting()) return
    const next = state.steps > 0 ? strip.data.above : strip.data.below
    if (next === null) {
      state.steps = 0
      return
    }
    state.steps -= Math.sign(state.steps)
    state.code = BigInt(`0x${next}`)
    send()
  }

  function set(i, value) {
    const bit = 1n << BigInt(bits.length - 1 - i)
    const now = (state.code & bit) !== 0n
    state.here = i
    state.steps = 0
    if (value === now) return
    state.code ^= bit
    send()
  }

  function go(i) {
    state.here = Math.min(Math.max(i, 0), bits.length - 1)
    bits[state.here].focus()
  }

  bits.forEach((button, i) => {
    button.onclick = () => set(i)
    button.onpointerenter = () => { state.hover = i; tell() }
    button.onpointerleave = () => { state.hover = null; tell() }
    button.onfocus = () => { state.here = i; state.focused = true; paint() }
    button.onblur = () => { state.focused = false; tell() }
    button.onkeydown = event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const moves = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: bits.length - 1 }
      if (bits.length > PER_ROW) Object.assign(moves, { ArrowUp: i - PER_ROW, ArrowDown: i + PER_ROW })
      if (event.key in moves) go(moves[event.key])
      else if (event.key === "0" || event.key === "1") set(i, event.key === "1")
      else return
      event.preventDefault()
    }
  })
  strip.below.onclick = () => { state.steps -= 1; step() }
  strip.above.onclick = () => { state.steps += 1; step() }
}

function build(root, data) {
  const previous = strips.get(root)
  const strip = element("div", "strip")
  strip.setAttribute("role", "toolbar")
  strip.setAttribute("aria-label", `The ${data.bits.length} bits of ${data.title}`)
  strip.dataset.bits = data.bits.length
  strip.style.setProperty("--count", Math.min(data.bits.length, PER_ROW))
  const bits = []
  const hex = []
  let byte, nibble
  data.bits.forEach(({ field }, i) => {
    const left = data.bits.length - i
    if (!i || left % 8 === 0) strip.append((byte = element("span", "byte")))
    if (!i || left % 4 === 0) {
      const digit = element("span", "hex")
      digit.setAttribute("aria-hidden", "true")
      const column = element("span", "nibble")
      nibble = element("span", "cells")
      column.append(nibble, digit)
      byte.append(column)
      hex.push(digit)
    }
    const first = !i || data.bits[i - 1].field !== field
    const cell = element("span", `cell ${field}${first ? " first" : ""}`)
    const letter = element("span", "letter")
    letter.setAttribute("aria-hidden", "true")
    if (first || i === PER_ROW) {
      const word = first ? field : `${field}, continued`
      letter.append(element("b", "", LETTERS[field]), element("span", "word", ` ${word}`))
    }
    const button = element("button", "bit")
    button.type = "button"
    cell.append(letter, button)
    nibble.append(cell)
    bits.push(button)
  })
  const detail = element("p", "detail")
  const below = stepper(data.previous)
  const above = stepper(data.next)
  const foot = element("div", "foot")
  foot.append(detail, below, above)
  root.replaceChildren(strip, foot)
  const state = { code: 0n, sent: 0, here: 0, hover: null, focused: false, steps: 0 }
  if (previous) state.here = Math.min(previous.state.here, bits.length - 1)
  return { data, bits, hex, detail, below, above, state }
}

function stepper(text) {
  const button = element("button", "step")
  button.type = "button"
  button.append(element("span", "", text), element("span", "to"))
  return button
}

function element(tag, name, text = "") {
  const made = document.createElement(tag)
  if (name) made.className = name
  made.textContent = text
  return made
}

// Unicode superscripts as <sup>: the monospaced face does not have all of them.
function raised(text) {
  return text.split(RAISED).map((part, i) => {
    if (i % 2 === 0) return part.replaceAll(" × ", "\u00a0×\u00a0")
    const sup = document.createElement("sup")
    sup.textContent = [...part].map(c => PLAIN[c]).join("")
    return sup
  })
}
