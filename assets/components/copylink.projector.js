// A page on a projector (pages/common/projector.py): P turns it on and off, Escape off, the arrow keys and the page keys,
// which clickers send, step through its slides, and with Shift through the pages; Home and End go to the ends, and b or a
// period blanks the screen. One listener on the document serves all pages; what it does is a click on the switch in the
// menu, or on a button of the bar.
const FIELDS = "input, textarea, select, [contenteditable=true], [role=radiogroup], [role=slider], [role=grid], [role=listbox], [role=menu], [role=dialog]"

function stepWithKeys(projector, step) {
  const wired = document.napkinProjector
  document.napkinProjector = { projector, step }
  movedAt = performance.now()
  keepWhole(projector)
  tellNotes()
  followWall()
  if (wired) return
  document.addEventListener("keydown", (event) => {
    // A clicker goes on after a number was typed, and from a box that was ticked.
    const inside = event.composedPath().some((one) => one instanceof Element && one.matches(FIELDS))
    const on = document.napkinProjector.projector
    if (on && event.key === "Enter" && event.target instanceof HTMLInputElement) setTimeout(() => event.target.blur())
    const rel = { ArrowLeft: "prev", PageUp: "prev", ArrowRight: "next", PageDown: "next" }[event.key]
    const goesOn = event.key === "Escape" || event.key.startsWith("Page")
    const chosen = goesOn && event.target.matches("[type=radio], [type=checkbox], [role=radio], [aria-expanded=false]")
    if ((inside && !chosen) || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    const blank = document.documentElement.classList
    if (on && !event.shiftKey && ["b", "B", "."].includes(event.key)) blank.toggle("np-blank")
    else if (on && blank.contains("np-blank")) blank.remove("np-blank") // any key shows the slide again
    else if (event.key.toLowerCase() === "p" || (on && event.key === "Escape")) turn()
    else if (on && (event.key === "Home" || event.key === "End")) toEnd(event.key)
    else if (on && rel && event.shiftKey) toPage(rel === "next" ? 1 : -1)
    else if (on && rel) toSlide(rel)
    else return
    event.preventDefault()
  })
  document.addEventListener("click", (event) => {
    document.documentElement.classList.remove("np-blank")
    const note = event.target instanceof Element && event.target.closest(".np-notes > [data-href]")
    if (note) return channel().postMessage({ show: note.dataset.href })
    const button = event.target instanceof Element && event.target.closest(".np-bar button")
    if (!button) return
    if (button.matches(".leave")) turn()
    else if (button.dataset.href) along(button)
    else if (button.dataset.page !== undefined) linkOf(button.dataset.page)?.click()
    else press(button)
  })
}

// A deck goes on from page to page. A slide that asks covers what it shows until the next press. A second window that
// shows the notes hears on which slide the wall is.
const ASKS = ".np-predict:not(.answered)"

function along(button) {
  const asks = document.querySelector(ASKS)
  if (asks && button.matches(".next")) return asks.classList.add("answered")
  location.assign(button.dataset.href)
}

const WALL = "napkin:wall"
const WHERE = "where is the wall?"
const WRITTEN_EVERY_MS = 1000

function channel() {
  if (window.napkinWall) return window.napkinWall
  window.napkinWall = new BroadcastChannel(WALL)
  window.napkinWall.onmessage = ({ data }) => {
    if (data === WHERE) tellNotes()
    else if (data.show) document.querySelector(".np-bar[data-deck-slide]") && location.assign(data.show)
    else if (document.querySelector(".np-notes")) markNotes(data)
  }
  return window.napkinWall
}

function tellNotes() {
  const bar = document.querySelector(".np-bar[data-deck-slide]")
  if (!bar) return
  const before = JSON.parse(sessionStorage.getItem(WALL) ?? "{}")
  const wall = { slide: Number(bar.dataset.deckSlide), began: before.began ?? Date.now() }
  sessionStorage.setItem(WALL, JSON.stringify(wall)) // the next slide is another document in the same window
  channel().postMessage(wall)
}

function followWall() {
  if (document.querySelector(".np-notes:not(:has([data-now=now]))")) channel().postMessage(WHERE)
}

function markNotes({ slide, began }) {
  for (const one of document.querySelectorAll(".np-notes > li")) {
    const apart = one.value - slide
    one.dataset.now = apart === 0 ? "now" : apart === 1 ? "next" : ""
  }
  const now = document.querySelector(".np-notes > [data-now=now]")
  const write = () => {
    const used = document.querySelector(".np-used")
    if (used) used.textContent = `${Math.floor((Date.now() - began) / 60000)} min used; this slide ends at ${now?.dataset.until} min.`
  }
  clearInterval(document.napkinClock)
  document.napkinClock = setInterval(write, WRITTEN_EVERY_MS)
  write()
  now?.scrollIntoView({ block: "nearest" })
}

// A press goes on from the one before, whose answer may be on its way, and not from what is still drawn.
const ON_ITS_WAY_MS = 1500
let last = { index: -1, at: -ON_ITS_WAY_MS, page: "" }

function press(button) {
  const slides = Number(button.closest(".np-bar").dataset.slides)
  const onward = button.matches(".next") ? (last.index + 1) % slides : Math.max(last.index - 1, 0)
  const recent = last.page === location.pathname && performance.now() - last.at < ON_ITS_WAY_MS
  const index = recent ? onward : Number(button.dataset.step)
  last = { index, at: performance.now(), page: location.pathname }
  main().scrollTo(0, 0)
  document.napkinProjector.step(index)
}

function toEnd(key) {
  const bar = document.querySelector(".np-bar")
  const there = bar?.dataset[key.toLowerCase()]
  if (there) return location.assign(there)
  last = { index: key === "Home" ? 0 : Number(bar.dataset.slides) - 1, at: performance.now(), page: location.pathname }
  document.napkinProjector.step(last.index)
}

const pageLinks = () => [...document.querySelectorAll(".st-key-np-menu [data-testid=stPageLink] a")]
const linkOf = (path) => pageLinks().find((link) => link.getAttribute("href") === path)

function toPage(by) {
  const links = pageLinks()
  links.at((links.indexOf(linkOf(location.pathname.split("/").at(-1))) + by) % links.length)?.click()
}

function turn() {
  if (document.activeElement === main()) main().blur() // a click on the page; its ring would stand across the slide
  document.querySelector(".st-key-projector input")?.click()
}

// Where a part has more than fits, as a list of questions, the keys first go through it. A slide that is still being
// drawn has not been fitted: where it has more, a press waits for it, and the next one goes on.
const STILL_MS = 700
let movedAt = 0
let waiting = 0
const main = () => document.querySelector("[data-testid=stMain]")
const shown = () =>
  [...document.querySelectorAll(".stMain .stElementContainer")].filter(
    (one) => !one.querySelector(".np-bar, .np-answer") && one.checkVisibility({ visibilityProperty: true }) && one.offsetHeight,
  )

function toSlide(rel) {
  const pressed = waiting
  waiting = clearTimeout(waiting)
  if (pressed || !scrollsOn(rel)) return document.querySelector(`.np-bar .${rel}`)?.click()
  const left = STILL_MS - (performance.now() - movedAt)
  if (left <= 0) return main().scrollBy(0, (rel === "next" ? 0.8 : -0.8) * main().clientHeight)
  waiting = setTimeout(() => {
    waiting = 0
    toSlide(rel)
  }, left)
}

function scrollsOn(rel) {
  if (!document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]')) return false
  return rel === "prev" ? main().scrollTop > SLACK : shown().some((one) => one.getBoundingClientRect().bottom > innerHeight + SLACK)
}

// A slide is whole. Where it is too full, its picture leaves out what it can do without (--np-drop1 and on, which hide
// parts of components), then a panel its last elements, and a table its last columns and rows; and what a panel says
// becomes smaller. Where there is room to spare, the picture grows.
const DROPS = 6
const SLACK = 24 // pixels: less is no line of text
const PICTURE = ".np-stages, .stPlotlyChart, .stBidiComponent, .np-tabled, .np-axes"
const GROWN = [1.5, 1.4, 1.3, 1.2, 1.1, 1]
let watching = null
let leftOut = []

function keepWhole(projector) {
  watching?.disconnect()
  const block = document.querySelector("[data-testid=stMainBlockContainer] .stVerticalBlock")
  if (!projector || !block) {
    document.documentElement.removeAttribute("style")
    return putBack()
  }
  watching = new ResizeObserver(() => requestAnimationFrame(fitSlide))
  watching.observe(block)
  if (!window.napkinResized) addEventListener("resize", () => document.napkinProjector.projector && fitSlide())
  window.napkinResized = true
}

function putBack() {
  for (const one of leftOut) {
    one.hidden = false
    delete one.dataset.npOff
  }
  leftOut = []
}

function leaveOut(...all) {
  for (const one of all) {
    one.hidden = !one.matches(".stElementContainer") // which a chart without any width would wait for
    one.dataset.npOff = "true"
  }
  leftOut.push(...all)
}

function trim(table, full) {
  const box = table.parentElement
  const columns = (over) => {
    for (let last = table.rows[0].cells.length - 1; last > 1 && over(); last--)
      leaveOut(...[...table.rows].flatMap((row) => row.cells[last] ?? []))
  }
  columns(() => box.scrollWidth > box.clientWidth)
  for (const row of [...table.tBodies[0].rows].slice(1).reverse()) if (full() && !row.matches(".here, .np-here")) leaveOut(row)
  columns(full)
}

function fitSlide() {
  movedAt = performance.now()
  const bar = document.querySelector(".np-bar")
  if (!bar) return
  const root = document.documentElement.style
  let [small, parts] = [false, []]
  const roots = () => parts.flatMap((one) => [one, ...[...one.querySelectorAll("*")].flatMap((e) => e.shadowRoot ?? [])])
  const set = (drop, fit) => {
    for (let n = 1; n <= DROPS; n++) n <= drop ? root.setProperty(`--np-drop${n}`, "none") : root.removeProperty(`--np-drop${n}`)
    drop === DROPS - 1 ? root.setProperty("--np-back", "block") : root.removeProperty("--np-back") // there is room again
    root.setProperty("--np-fit", fit)
    root.setProperty("--np-said", small ? "13.5px" : "16px")
    for (const one of roots()) one.querySelector(".root")?.picture?.fit() // else it would be measured as it was before
  }
  putBack()
  set(0, 1)
  parts = shown()
  const end = () => Math.max(0, ...parts.filter((one) => !one.dataset.npOff).map((one) => one.getBoundingClientRect().bottom + main().scrollTop))
  const full = () => end() > innerHeight
  let drop = 0
  while (full() && drop < DROPS) set(++drop, 1)
  const picture = parts.find((one) => one.querySelector(PICTURE))
  const under = (one) => picture?.querySelector(".stPlotlyChart") && picture.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING
  const row = picture?.closest(".stHorizontalBlock")
  const pictured = (one) => one === picture || (row?.contains(one) && one.querySelector(".stPlotlyChart"))
  const beside = parts.filter((one) => !pictured(one) && (one.closest(".stExpander") || under(one)))
  const said = beside.find((one) => one.querySelector(".np-takeaway"))
  for (const one of beside.reverse()) if (full() && one !== said) leaveOut(one)
  for (const table of roots().flatMap((one) => [...one.querySelectorAll("table")])) if (table.tBodies.length && !table.closest("[data-np-off]")) trim(table, full)
  small = full()
  set(drop, 1)
  if (full()) return
  const wide = () => roots().some((one) => one.querySelector(".unstrided, .unshaped") || [...one.querySelectorAll(".root, .np-scroll, .np-column")].some((box) => box.scrollWidth > box.clientWidth))
  for (const fit of GROWN) {
    set(drop, fit)
    if (fit === 1 || !(full() || wide())) return
  }
}
