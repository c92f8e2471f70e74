// Every code of a small format as a cell: the high bits choose the row, the low four the column.
// Click or Enter loads a code into the strip; arrows, Home and End move.
const RAISED = /([⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/
const PLAIN = { "⁺": "+", "⁻": "−", "⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9" }
const COLUMNS = 16
const grids = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  let grid = grids.get(root)
  const drawn = `${data.format} ${data.colour}`
  if (!grid || grid.drawn !== drawn) {
    const here = grid?.here ?? data.code ?? 0
    grid = { drawn, here: Math.min(here, data.cells.length - 1), ...build(root, data) }
    grids.set(root, grid)
  }
  const say = i => {
    const cell = data.cells[i]
    grid.detail.replaceChildren(...(cell ? raised(`${hex(i, data)} · ${bits(i, data)} · ${cell.kind} · ${cell.full}`) : [data.hint]))
  }
  grid.cells.forEach((button, i) => {
    const chosen = i === data.code
    button.classList.toggle("chosen", chosen)
    button.setAttribute("aria-pressed", String(chosen))
    button.tabIndex = i === grid.here ? 0 : -1
    button.onclick = () => setTriggerValue("pick", { format: data.format, code: i.toString(16) })
    button.onpointerenter = () => say(i)
    button.onpointerleave = () => say(data.code)
    button.onfocus = () => {
      grid.cells[grid.here].tabIndex = -1
      grid.here = i
      button.tabIndex = 0
      say(i)
    }
    button.onkeydown = event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const moves = {
        ArrowLeft: i - 1, ArrowRight: i + 1, ArrowUp: i - COLUMNS, ArrowDown: i + COLUMNS,
        Home: i - (i % COLUMNS), End: i - (i % COLUMNS) + COLUMNS - 1,
      }
      if (!(event.key in moves)) return
      event.preventDefault()
      grid.cells[moves[event.key]]?.focus()
    }
  })
  say(data.code)
}

const hex = (i, data) => `0x${i.toString(16).padStart(Math.ceil(data.bits / 4), "0")}`
const bits = (i, data) => i.toString(2).padStart(data.bits, "0")

function build(root, data) {
  const grid = element("div", "grid")
  grid.setAttribute("role", "group")
  grid.setAttribute("aria-label", data.label)
  const cells = data.cells.map(({ kind, text, heat, full }, i) => {
    const button = element("button", `cell ${data.colour === "value" ? "heat" : kind.split(" ")[0]}`)
    button.type = "button"
    button.style.setProperty("--heat", `${Math.round(6 + 40 * heat)}%`)
    button.replaceChildren(...raised(text))
    button.setAttribute("aria-label", `${hex(i, data)}, ${full}, ${kind}`)
    return button
  })
  for (let start = 0; start < cells.length; start += COLUMNS) {
    const head = element("span", "head")
    head.textContent = data.cells.length > COLUMNS ? `${(start / COLUMNS).toString(16)}_` : ""
    head.setAttribute("aria-hidden", "true")
    grid.append(head, ...cells.slice(start, start + COLUMNS))
  }
  const top = element("div", "grid top")
  top.setAttribute("aria-hidden", "true")
  top.append(element("span", "head"))
  for (let i = 0; i < Math.min(COLUMNS, cells.length); i++) {
    const head = element("span", "head")
    head.textContent = `_${i.toString(16)}`
    top.append(head)
  }
  const detail = element("p", "detail")
  const scroll = element("div", "scroll")
  scroll.append(top, grid)
  root.replaceChildren(scroll, detail)
  return { cells, detail }
}

function element(tag, name) {
  const made = document.createElement(tag)
  made.className = name
  return made
}

function raised(text) {
  return text.split(RAISED).map((part, i) => {
    if (i % 2 === 0) return part
    const sup = document.createElement("sup")
    sup.textContent = [...part].map(c => PLAIN[c]).join("")
    return sup
  })
}
