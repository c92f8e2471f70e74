// A page on a projector (pages/parts/projector.py): P turns it on and off, Escape off, the arrow keys step through its
// stories, and with Shift through the pages. One listener on the document serves all pages; what it does is a click
// on the switch in the menu, or on a button or link of the bar.
const FIELDS = "input, textarea, select, [contenteditable=true], [role=radiogroup], [role=slider], [role=grid], [role=listbox], [role=menu], [role=dialog]"

function stepWithKeys(projector, step) {
  const wired = document.napkinProjector
  document.napkinProjector = { projector, step }
  if (wired) return
  document.addEventListener("keydown", (event) => {
    const inside = event.composedPath().some((one) => one instanceof Element && one.matches(FIELDS))
    if (inside || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    const on = document.napkinProjector.projector
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key]
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

// A press that comes before the page has answered the last one goes on from there.
function press(button) {
  const here = Number(button.dataset.step), bar = button.closest(".np-bar")
  for (const [name, index] of [["next", here + 1], ["prev", here - 1]]) {
    const other = bar.querySelector(`button.${name}`)
    if (other && index >= 0 && index < Number(bar.dataset.chips)) other.dataset.step = index
  }
  document.napkinProjector.step(here)
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
