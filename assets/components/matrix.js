// The matrix of a decision: a row a run, a column an offer, each cell a button. The server sends what to draw, a click
// sends back which cell. Arrow keys move between cells, so that the whole matrix is one stop of the Tab key.

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const focused = root.getRootNode().activeElement?.dataset?.id
  const table = element("table")
  table.setAttribute("aria-label", data.alt)
  table.style.setProperty("--columns", data.heads.length)
  const head = element("tr")
  head.append(heading("col", { name: data.corner, about: "" }), ...data.heads.map(one => heading("col", one)))
  const buttons = data.rows.map(row => row.cells.map(cell => button(cell, data, setTriggerValue)))
  const rows = data.rows.map((row, i) => {
    const line = element("tr")
    line.append(heading("row", row), ...buttons[i].map(one => { const place = element("td"); place.append(one); return place }))
    return line
  })
  const [top, body] = [element("thead"), element("tbody")]
  top.append(head)
  body.append(...rows)
  table.append(top, body)
  const scroll = element("div", "scroll")
  scroll.append(table)
  root.replaceChildren(scroll)
  const stop = buttons.flat().find(one => one.dataset.id === data.here) ?? buttons[0]?.[0]
  if (stop) stop.tabIndex = 0
  table.onkeydown = event => move(event, buttons)
  if (focused) root.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus()
}

function heading(scope, { name, about }) {
  const made = element("th")
  made.scope = scope
  made.append(element("span", "", name), element("small", "", about))
  return made
}

function button(cell, data, setTriggerValue) {
  const here = cell.id === data.here
  const made = element("button", `${cell.state}${here ? " here" : ""}${cell.placed ? " placed" : ""}`)
  made.type = "button"
  made.tabIndex = -1
  made.dataset.id = cell.id
  made.title = cell.more.join(" · ")
  made.setAttribute("aria-label", cell.label)
  made.setAttribute("aria-pressed", String(here))
  const first = element("span", "first")
  first.append(element("b", "", cell.days), element("span", "verdict", cell.verdict))
  made.append(first, ...cell.more.map(text => element("small", "", text)))
  if (cell.placed) made.append(element("em", "", data.placed))
  made.onclick = () => setTriggerValue("pick", cell.id)
  return made
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }

function move(event, buttons) {
  const row = buttons.findIndex(line => line.includes(event.target))
  if (row < 0 || !(event.key in STEPS)) return
  const [down, right] = STEPS[event.key]
  const next = buttons[row + down]?.[buttons[row].indexOf(event.target) + right]
  event.preventDefault()
  if (!next) return
  event.target.tabIndex = -1
  next.tabIndex = 0
  next.focus()
}

function element(tag, name, text = "") {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text) made.textContent = text
  return made
}
