// One number in every format: a table whose headings sort it and whose first column chooses the format.
// The server sends the rows in order; rows are matched by format, so that focus stays where it was.
const RAISED = /([⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/
const PLAIN = { "⁺": "+", "⁻": "−", "⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9" }
const FIELDS = ["sign", "exponent", "fraction"]
const tables = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  let table = tables.get(root)
  if (!table) tables.set(root, (table = build(root, data)))
  data.columns.forEach(({ id }, i) => {
    const sorted = data.sort === id
    const { cell, button } = table.heads[i]
    if (sorted) cell.setAttribute("aria-sort", data.down ? "descending" : "ascending")
    else cell.removeAttribute("aria-sort")
    button.dataset.arrow = sorted ? (data.down ? "↓" : "↑") : ""
    button.onclick = () => setTriggerValue("sort", id)
  })
  const rows = data.rows.map(row => {
    const made = table.rows.get(row.id) ?? line()
    table.rows.set(row.id, made)
    fill(made, row)
    made.pick.onclick = () => setTriggerValue("pick", row.id)
    return made.row
  })
  const focused = root.getRootNode().activeElement
  if (rows.some((row, i) => table.body.children[i] !== row) || table.body.children.length !== rows.length) {
    table.body.replaceChildren(...rows)
    if (focused && focused.isConnected) focused.focus()
  }
}

function build(root, data) {
  const scroll = element("div", "scroll")
  scroll.tabIndex = 0
  scroll.setAttribute("role", "region")
  scroll.setAttribute("aria-label", data.caption)
  const table = element("table")
  const caption = element("caption", "", data.caption)
  const head = element("thead")
  const titles = element("tr")
  const heads = data.columns.map(({ title, below, numeric }) => {
    const cell = element("th", numeric ? "num" : "")
    cell.scope = "col"
    const button = element("button", "sort", title)
    button.type = "button"
    cell.append(button)
    if (below) cell.append(element("small", "", below))
    titles.append(cell)
    return { cell, button }
  })
  head.append(titles)
  const body = element("tbody")
  table.append(caption, head, body)
  scroll.append(table)
  root.replaceChildren(scroll)
  return { heads, body, rows: new Map() }
}

function line() {
  const row = element("tr")
  const name = element("th")
  name.scope = "row"
  const pick = element("button", "pick")
  pick.type = "button"
  const widths = element("small")
  name.append(pick, widths)
  const code = element("td")
  const bits = element("span", "bits")
  bits.setAttribute("aria-hidden", "true")
  const hex = element("small", "mono")
  code.append(bits, hex)
  const cells = [0, 1, 2].map(() => {
    const cell = element("td", "num")
    const main = element("span")
    const small = element("small")
    cell.append(main, small)
    return { cell, main, small }
  })
  row.append(name, code, ...cells.map(c => c.cell))
  return { row, pick, widths, bits, hex, cells, drawn: {} }
}

function fill(made, row) {
  const key = JSON.stringify(row)
  if (made.drawn === key) return
  made.drawn = key
  made.row.classList.toggle("here", row.here)
  made.pick.textContent = row.title
  made.pick.setAttribute("aria-pressed", String(row.here))
  made.widths.textContent = row.widths
  made.hex.textContent = row.hex
  if (made.bits.dataset.text !== row.bits.join(" ")) {
    made.bits.dataset.text = row.bits.join(" ")
    made.bits.replaceChildren(...row.bits.map((text, i) => {
      const group = element("i", FIELDS[i])
      group.append(...[...text].map(bit => element(bit === "1" ? "u" : "s")))
      return group
    }))
  }
  row.cells.forEach(([main, small], i) => {
    made.cells[i].main.replaceChildren(...raised(main))
    made.cells[i].small.replaceChildren(...raised(small))
  })
}

function element(tag, name, text = "") {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text) made.textContent = text
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
