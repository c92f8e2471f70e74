// A table of cases: what one would say, what torch gives, why. The title of a row is a button that runs its code above.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.pick = (number) => setTriggerValue("pick", number)
  const drawn = JSON.stringify(data.rows)
  if (root.drawn !== drawn) {
    root.drawn = drawn
    build(root, data)
  }
  root.querySelectorAll("tr[data-row]").forEach((row, number) => {
    row.classList.toggle("here", number === data.here)
    row.querySelector("button").setAttribute("aria-pressed", String(number === data.here))
  })
}

function make(tag, className, text) {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined) element.textContent = text
  return element
}

// Text in which `code` stands between backticks.
function rich(tag, text) {
  const element = make(tag)
  text.split("`").forEach((part, i) => element.append(i % 2 ? make("code", "", part) : part))
  return element
}

function build(root, { headings, rows }) {
  const table = make("table")
  const head = make("tr")
  for (const heading of headings) {
    const cell = make("th", "", heading)
    cell.scope = "col"
    head.append(cell)
  }
  const body = make("tbody")
  rows.forEach(({ title, code, shape, looks, gives, why }, number) => {
    const row = make("tr")
    row.dataset.row = number
    const first = make("td")
    const button = make("button", "", title)
    button.type = "button"
    button.onclick = () => {
      root.pick(number)
      // The code and its picture stand at the top of the page, a screen or two above this table.
      document.querySelector('[data-testid="stMain"]')?.scrollTo({ top: 0 })
    }
    first.append(button, make("code", "", code), make("small", "", shape))
    const result = make("td", "gives")
    for (const line of gives) result.append(make("span", "", line))
    row.append(first, rich("td", looks), result, rich("td", why))
    body.append(row)
  })
  const top = make("thead")
  top.append(head)
  table.append(top, body)
  const box = make("div", "scroll")
  box.tabIndex = 0
  box.setAttribute("role", "region")
  box.setAttribute("aria-label", "Results that look wrong and are not")
  box.append(table)
  root.replaceChildren(box)
}
