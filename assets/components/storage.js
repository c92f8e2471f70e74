// The steps of a program, a line each, and the memory they leave: every storage once, as a strip of cells, under it the
// tensors on it that are open, as nested grids. A line of the timeline opens its tensors and shows memory as of then.
// Pointing at an element, or walking to it with the arrow keys, lights the same bytes wherever they are drawn.
// All text is set with textContent. A run with the same data leaves the picture, and the focus in it, as it is.
const FEW = 2 // a program of so many steps after the start is shown with all its tensors open

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.fix = (code) => setTriggerValue("fix", code)
  const drawn = JSON.stringify(data)
  if (root.drawn !== drawn) {
    root.drawn = drawn
    root.picture = new Picture(root, data)
  }
  if (!root.watching) {
    root.watching = new ResizeObserver(() => root.picture.fit())
    root.watching.observe(root)
  }
}

class Picture extends Tensors {
  constructor(root, data) {
    super()
    this.root = root
    this.steps = data.steps
    this.kept = data.kept
    this.texts = data.texts
    this.hint = data.hint
    this.most = data.most
    this.storages = data.storages.map((storage, number) => ({ ...storage, number, strips: [], tensors: [] }))
    for (const { readings } of this.storages)
      for (const reading of readings) reading.widest = longest([...reading.values, ...reading.writes.flatMap((write) => write.before)])
    this.tensors = data.tensors.map((tensor, number) => this.located(tensor, number))
    this.why = data.why
    this.home = data.active
    this.active = -1
    this.at = Math.max(this.steps.length - 1, 0)
    this.lit = []
    this.rove = new Map()
    this.readout = make("p", "readout", data.hint)
    this.readout.setAttribute("role", "status")
    this.said = ""
    this.list = make("div", "storages", ...this.storages.map((storage) => this.storage(storage)))
    this.rows = []
    // A few steps are seen at a glance in the picture itself, which then stands first.
    const steps = this.steps.length > 1 ? [timeline(this), ...(data.memory ? [marked("p", "memory-sum", data.memory)] : [])] : []
    const isLong = this.steps.length > FEW + 1
    const isFirst = isLong || data.slide // on a slide the code comes first
    root.classList.toggle("slide", Boolean(data.slide))
    root.replaceChildren(
      ...(isFirst ? steps : []),
      ...(this.why ? [reason(this.why, this.texts, (code) => root.fix(code))] : []),
      this.readout,
      this.list,
      ...(isFirst ? [] : steps),
    )
    this.width = 0
    this.list.classList.toggle("long", isLong)
    this.open(isLong ? this.steps[this.at].tensors : this.tensors.map((tensor) => tensor.number), true)
    this.fit()
    this.list.onpointerover = (event) => this.point(event.target)
    this.list.onpointerleave = () => this.rest()
    this.list.onkeydown = (event) => this.key(event)
    this.list.onfocusin = (event) => event.target.at && event.target.matches(":focus-visible") && this.show(event.target.at)
    this.list.onfocusout = () => this.rest()
  }

  storage(storage) {
    const section = (storage.section = make("section", `storage s${storage.number % 4}`))
    for (const reading of storage.readings) reading.now = [...reading.values]
    const head = make("div", "head", make("h3", "", fill(this.texts.letter, storage)), make("span", "", storage.title))
    if (storage.made) head.append(make("span", "", `${this.texts.made} `, make("code", "", storage.made)))
    storage.reads = make("span", "reads")
    head.append(storage.reads)
    section.append(head)
    storage.box = make("div", "memory")
    section.append(storage.box)
    section.append((storage.cards = make("div", "cards")))
    return section
  }

  // The strips for the present width; the grids below do not depend on it.
  fit() {
    const width = this.root.clientWidth || 900
    if (width === this.width) return
    this.width = width
    this.narrow()
    this.refit()
  }

  // On a slide no code is cut: strides make room for it, then shapes, and then it is broken into lines.
  narrow() {
    const { classList } = this.root
    classList.remove("unstrided", "unshaped")
    if (!classList.contains("slide")) return
    classList.add("measured")
    const sources = this.rows.map((row) => row.querySelector(".source"))
    for (const name of ["unstrided", "unshaped"])
      if (sources.some((one) => one.scrollWidth > one.clientWidth + 1)) classList.add(name)
    classList.remove("measured")
  }

  refit() {
    this.lit = []
    for (const tensor of this.tensors) if (tensor.nodes[0]) delete tensor.nodes[0].closest(".scroll").scrolls
    for (const storage of this.storages) {
      if (storage.section.hidden || storage.fitted === this.width) continue
      storage.fitted = this.width
      storage.shown = null
      storage.strips = storage.readings.map((reading, number) => this.strip(storage, reading, number))
      storage.box.replaceChildren(...storage.strips.map((strip) => strip.figure))
    }
    this.active = -1
    this.go(this.at)
  }
}
