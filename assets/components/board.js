// The what-if board: a grid of buttons with two frontiers over it. The server sends what to draw, a click sends back
// which cell. Arrow keys move between cells, so that the whole board is one stop of the Tab key.
const NS = "http://www.w3.org/2000/svg"

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const focused = root.getRootNode().activeElement?.dataset?.id
  const board = element("div", "board")
  board.style.setProperty("--columns", data.x.ticks.length)
  board.style.setProperty("--rows", data.rows.length)
  board.style.setProperty("--widest", Math.max(...data.rows.flat().map(cell => cell.text.length)))
  for (const side of ["top", "right", "bottom"]) {
    board.style.setProperty(`--${side}`, data.lines.filter(line => line.side === side).length)
  }
  board.append(
    element("div", "title", data.title),
    element("div", "ytitle", data.y.title),
    ticks("yticks", data.y.ticks),
    cells(data, setTriggerValue),
    ticks("xticks", data.x.ticks),
    element("div", "xtitle", data.x.title),
  )
  const scroll = element("div", "scroll")
  scroll.append(board)
  root.replaceChildren(scroll)
  if (focused) root.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus()
}

function ticks(name, texts) {
  const made = element("div", name)
  made.append(...texts.map(text => element("div", "tick", text)))
  return made
}

function cells(data, setTriggerValue) {
  const area = element("div", "area")
  const grid = element("div", "cells")
  grid.setAttribute("role", "grid")
  grid.setAttribute("aria-label", data.alt)
  const buttons = data.rows.map(row => row.map(cell => button(cell, setTriggerValue)))
  for (const line of buttons) {
    const row = element("div", "row")
    row.setAttribute("role", "row")
    row.append(...line.map(one => {
      const place = element("div", "cell")
      place.setAttribute("role", "gridcell")
      place.append(one)
      return place
    }))
    grid.append(row)
  }
  const stop = buttons.flat().find(one => one.classList.contains("here")) ?? buttons.at(-1)?.[0]
  if (stop) stop.tabIndex = 0
  grid.onkeydown = event => move(event, buttons)
  area.append(grid, frontiers(data), ...data.lines.map(line => name(line, data)))
  return area
}

function button(cell, setTriggerValue) {
  const made = element("button", `value${cell.stuck ? " stuck" : ""}${cell.here ? " here" : ""}`)
  made.type = "button"
  made.tabIndex = -1
  made.dataset.id = cell.id
  made.title = cell.label
  made.setAttribute("aria-label", cell.label)
  made.setAttribute("aria-pressed", String(cell.here))
  made.style.setProperty("--shade", `light-dark(${cell.light}, ${cell.dark})`)
  made.append(element("span", "", cell.text))
  if (cell.tag) {
    const tags = element("small")
    tags.append(...cell.tag.split(" · ").map(tag => element("span", "", tag)))
    made.append(tags)
  }
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

function frontiers(data) {
  const svg = document.createElementNS(NS, "svg")
  svg.setAttribute("viewBox", `0 0 ${data.x.ticks.length} ${data.rows.length}`)
  svg.setAttribute("preserveAspectRatio", "none")
  svg.setAttribute("aria-hidden", "true")
  for (const { kind, edges } of data.lines) {
    const path = document.createElementNS(NS, "path")
    path.setAttribute("class", kind)
    path.setAttribute("d", edges.map(([x0, y0, x1, y1]) => `M${x0} ${y0}L${x1} ${y1}`).join(""))
    svg.append(path)
  }
  return svg
}

// The name of a frontier stands outside the board where the line leaves it, on the side where there is room.
function name(line, data) {
  const made = element("span", `name ${line.kind} ${line.side} ${line.before ? "before" : "after"}`, line.name)
  const upright = line.side === "top" || line.side === "bottom"
  const share = 100 * line.at / (upright ? data.x.ticks.length : data.rows.length)
  const edge = upright ? (line.before ? "right" : "left") : line.before ? "bottom" : "top"
  made.style[edge] = `${line.before ? 100 - share : share}%`
  made.style.setProperty("--lane", line.lane)
  return made
}

function element(tag, name, text = "") {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text) made.textContent = text
  return made
}
