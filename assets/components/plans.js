// A table of plans whose first column puts one in force: the server sends the rows, a click sends the row's id back.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const focused = root.getRootNode().activeElement?.dataset?.id
  const scroll = element("div", "scroll")
  scroll.tabIndex = 0
  scroll.setAttribute("role", "region")
  scroll.setAttribute("aria-label", data.caption)
  const table = element("table")
  const titles = element("tr")
  titles.append(...data.columns.map(({ title, numeric }) => {
    const cell = element("th", numeric ? "num" : "", title)
    cell.scope = "col"
    return cell
  }))
  const head = element("thead")
  head.append(titles)
  const body = element("tbody")
  body.append(...data.rows.map(row => line(row, data.columns, setTriggerValue)))
  table.append(element("caption", "", data.caption), head, body)
  scroll.append(table)
  root.replaceChildren(scroll)
  if (focused) root.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus()
}

function line(row, columns, setTriggerValue) {
  const made = element("tr", row.here ? "here" : "")
  made.append(...row.cells.map((text, i) => {
    if (i > 0) return element("td", columns[i].numeric ? "num" : "", text)
    const name = element("th")
    name.scope = "row"
    const pick = element("button", "pick", text)
    pick.type = "button"
    pick.dataset.id = row.id
    pick.setAttribute("aria-pressed", String(row.here))
    pick.onclick = () => setTriggerValue("pick", row.id)
    name.append(pick)
    return name
  }))
  return made
}

function element(tag, name, text = "") {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text) made.textContent = text
  return made
}
