// A page on a projector (pages/common/projector.py): P turns it on and off, Escape off, the arrow keys and the page keys,
// which clickers send, step through its slides, and with Shift through the pages. One listener on the document serves
// all pages; what it does is a click on the switch in the menu, or on a button of the bar.
const FIELDS = "input, textarea, select, [contenteditable=true], [role=radiogroup], [role=slider], [role=grid], [role=listbox], [role=menu], [role=dialog]"

function stepWithKeys(projector, step) {
  const wired = document.napkinProjector
  document.napkinProjector = { projector, step }
  if (wired) return
  document.addEventListener("keydown", (event) => {
    const inside = event.composedPath().some((one) => one instanceof Element && one.matches(FIELDS))
    if (inside || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    const on = document.napkinProjector.projector
    const rel = { ArrowLeft: "prev", PageUp: "prev", ArrowRight: "next", PageDown: "next" }[event.key]
    if (event.key.toLowerCase() === "p" || (on && event.key === "Escape")) turn()
    else if (on && rel && event.shiftKey) toPage(rel === "next" ? 1 : -1)
    else if (on && rel) document.querySelector(`.np-bar .${rel}`)?.click()
    else return
    event.preventDefault()
  })
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest(".np-bar button")
    if (!button) return
    if (button.matches(".leave")) turn()
    else press(button)
  })
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
  document.querySelector("[data-testid=stMain]").scrollTo(0, 0)
  document.napkinProjector.step(index)
}

function toPage(by) {
  const links = [...document.querySelectorAll("[data-testid=stSidebar] [data-testid=stPageLink] a")]
  const name = location.pathname.split("/").at(-1)
  const here = links.findIndex((link) => link.getAttribute("href") === name)
  links.at((here + by) % links.length)?.click()
}

function turn() {
  document.querySelector(".st-key-projector input")?.click()
}
