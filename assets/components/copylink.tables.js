// Every table of the product (`table_html` in pages/common/show.py) can be sorted by a heading and downloaded as CSV.
// One listener on the document serves all of them, whenever they are drawn.
function sortAndDownloadTables() {
  if (document.napkinTables) return
  document.napkinTables = true
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest(".np-tabled button")
    if (!button) return
    const table = button.closest(".np-tabled").querySelector("table")
    if (button.matches(".np-csv")) download(table)
    else if (button.closest("thead")) sortBy(button.closest("th"))
  })
}

const NEXT = { none: "first", first: "second", second: "none" }

// Numbers from the largest and words from A to Z, then the other way, then as it was.
function sortBy(heading) {
  const table = heading.closest("table")
  const at = heading.cellIndex
  const body = table.tBodies[0]
  const rows = [...body.rows]
  rows.forEach((row, i) => (row.dataset.at ??= i))
  const numeric = rows.some((row) => "value" in row.cells[at].dataset)
  const turn = NEXT[heading.dataset.turn ?? "none"]
  for (const other of heading.parentElement.cells) {
    other.removeAttribute("aria-sort")
    delete other.dataset.turn
  }
  heading.dataset.turn = turn
  const falling = turn !== "none" && numeric === (turn === "first")
  if (turn !== "none") heading.setAttribute("aria-sort", falling ? "descending" : "ascending")
  const way = falling ? -1 : 1
  rows.sort((a, b) => {
    const [x, y] = [a.cells[at], b.cells[at]]
    const known = numeric ? ("value" in y.dataset) - ("value" in x.dataset) : !!said(y) - !!said(x)
    const order = numeric ? x.dataset.value - y.dataset.value : said(x).localeCompare(said(y), "en", { numeric: true })
    return (turn === "none" ? 0 : known || way * (order || 0)) || a.dataset.at - b.dataset.at
  })
  body.append(...rows)
}

// A cell's own words, and the remark in small type under them.
function parts(cell) {
  const copy = cell.cloneNode(true)
  for (const raised of copy.querySelectorAll("sup")) {
    const power = raised.textContent
    raised.textContent = /^[-−]?[\w.]+$/.test(power) ? `^${power}` : `^(${power})`
  }
  for (const line of copy.querySelectorAll("br, small")) line.before(" ")
  const remarks = [...copy.querySelectorAll("small")].filter((small) => !small.closest(".mats"))
  for (const remark of remarks) remark.remove()
  return [copy.textContent, remarks.map((remark) => remark.textContent).join("; ")].map(flat)
}

const flat = (text) => text.replace(/\s+/g, " ").trim()
const said = (cell) => parts(cell)[0]

// The table as rows of fields. Numbers are plain, in the unit that the heading then names, or a column of its own
// where units differ; remarks have a column of their own too.
function fields(table) {
  const heads = [...table.tHead.rows[0].cells]
  const rows = [...table.tBodies[0].rows]
  const columns = heads.map((head, at) => {
    const cells = rows.map((row) => row.cells[at])
    const name = said(head)
    const figures = cells.filter((cell) => "value" in cell.dataset)
    const units = [...new Set(figures.map((cell) => cell.dataset.unit ?? ""))]
    const one = units.length === 1 && units[0] && !name.split(/[\s,()]+/).includes(units[0]) ? ` (${units[0]})` : ""
    const plain = (cell) => ("value" in cell.dataset && !("bound" in cell.dataset) ? cell.dataset.value : safe(said(cell)))
    const made = [[safe(name + one), ...cells.map(plain)]]
    if (units.length > 1) made.push([`${name} unit`.trim(), ...cells.map((cell) => cell.dataset.unit ?? "")])
    const remarks = cells.map((cell) => parts(cell)[1])
    if (remarks.some(Boolean)) made.push([`${name} note`.trim(), ...remarks.map(safe)])
    return made
  })
  const flattened = columns.flat()
  return flattened[0].map((_, i) => flattened.map((column) => column[i]))
}

// A spreadsheet takes what begins like this for a formula, also behind what separates cells in some country.
const safe = (text) => text.replace(/(^|;)(?=\s*[-+=@－＋＝＠])/g, "$1'")
const quoted = (field) => (/[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)

function download(table) {
  const text = fields(table).map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n"
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }))
  link.download = `${location.pathname.split("/").pop() || "napkin"}.csv`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
