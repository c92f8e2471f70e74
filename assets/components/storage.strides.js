// For storage.js: shape, strides, and offset of a drawn tensor as fields that redraw it.

const DRAG = 10 // pixels of dragging for one more

const same = (a, b) => a.offset === b.offset && ["shape", "stride"].every((name) => String(a[name]) === String(b[name]))

// "shape (2, 3) strides (3, 1) offset 0", every number a field that is typed, dragged or stepped by the arrow keys.
function layoutFields(tensor, picture) {
  const { texts } = picture
  const box = make("div", "layout")
  box.setAttribute("role", "group")
  box.setAttribute("aria-label", fill(texts.layout_of, tensor))
  const fields = { shape: [], stride: [], offset: [] }
  const tried = () => {
    const numbers = Object.values(fields).flat()
    for (const field of numbers) field.setAttribute("aria-invalid", String(!Number.isInteger(field.valueAsNumber)))
    if (!numbers.every((field) => Number.isInteger(field.valueAsNumber))) return
    const [shape, stride] = [fields.shape, fields.stride].map((list) => list.map((field) => field.valueAsNumber))
    picture.attempt(tensor, { shape, stride, offset: fields.offset[0].valueAsNumber })
  }
  const field = (name, value, dim) => {
    const input = make("input")
    input.type = "number"
    input.value = value
    input.min = 0
    input.max = 99999
    input.setAttribute("aria-label", fill(texts[`${name}_of`], { dim, name: tensor.name }))
    input.title = texts.redraw
    input.oninput = () => {
      input.style.width = `${Math.max(1, input.value.length) + 0.3}ch`
      tried()
    }
    input.style.width = `${String(value).length + 0.3}ch`
    draggable(input)
    fields[name].push(input)
    return input
  }
  for (const name of ["shape", "stride"]) {
    const list = make("span", "", `${texts[`field_${name}`]} `, "(")
    tensor[name].forEach((value, dim) => list.append(...(dim ? [", "] : []), field(name, value, dim)))
    list.append(tensor[name].length === 1 ? ",)" : ")")
    box.append(list)
  }
  box.append(make("span", "", `${texts.field_offset} `, field("offset", tensor.offset)))
  tensor.back = () => {
    for (const name of ["shape", "stride"])
      fields[name].forEach((input, dim) => {
        input.value = tensor.real[name][dim]
        input.style.width = `${input.value.length + 0.3}ch`
      })
    fields.offset[0].value = tensor.real.offset
    tried()
    fields.stride[0]?.focus()
  }
  return box
}

function draggable(input) {
  let from = null
  input.onpointerdown = (event) => {
    if (input.disabled) return
    from = { x: event.clientX, value: input.valueAsNumber || 0 }
    input.setPointerCapture(event.pointerId)
  }
  input.onpointermove = (event) => {
    if (!from) return
    const value = Math.min(Math.max(from.value + Math.round((event.clientX - from.x) / DRAG), input.min), input.max)
    if (value === input.valueAsNumber) return
    input.value = value
    input.oninput()
  }
  input.onpointerup = input.onpointercancel = () => (from = null)
}

// The call that makes the tried layout in torch, and the way back.
function tried(tensor, { shape, stride, offset }, texts) {
  const tuple = (numbers) => `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`
  const back = make("button", "fix", texts.back)
  back.type = "button"
  back.onclick = () => tensor.back()
  const call = `as_strided(${tuple(shape)}, ${tuple(stride)}, ${offset})`
  return [make("p", "say", `${texts.tried} `, make("code", "", call)), make("p", "actions", back)]
}
