// What is wrong with a report in this window, as the body of a function.
const luminance = (text) => {
  const [red, green, blue] = text.match(/[\d.]+/g).slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const found = getComputedStyle(at).backgroundColor;
    if (!found.startsWith("rgba(0, 0, 0, 0")) return found;
  }
  return "rgb(255, 255, 255)";
};
const faint = [];
for (const element of document.querySelectorAll("h1,h2,h3,p,a,strong,span,th,td,button,figcaption,dt,dd,li,text")) {
  const said = element.textContent.trim();
  if (!said) continue;
  const style = getComputedStyle(element);
  const color = element.tagName === "text" ? style.fill : style.color;
  const [high, low] = [luminance(color), luminance(ground(element))].sort((a, b) => b - a);
  if ((high + 0.05) / (low + 0.05) < 4.5) faint.push([element.tagName, said.slice(0, 30), color, ground(element)]);
}

const table = document.querySelector("#links table");
const heads = [...table.tHead.rows[0].cells];
const column = heads.findIndex((head) => head.textContent.startsWith("worst utilisation"));
const rows = () => [...table.tBodies[0].rows];
const sorted = [];
for (let press = 0; press < 2; press += 1) {
  heads[column].querySelector("button").click();
  sorted.push([heads[column].getAttribute("aria-sort"), rows().map((row) => Number(row.cells[column].dataset.value))]);
}
heads[0].querySelector("button").click();
const names = rows().map((row) => row.cells[0].textContent);

const isOutside = (element) =>
  !element.closest(".table, .wide, svg") && element.getBoundingClientRect().right > window.innerWidth + 1;
const letters = [...document.querySelectorAll("svg text")];
return {
  faint,
  sorted,
  names: [heads[0].getAttribute("aria-sort"), heads[column].getAttribute("aria-sort"), names],
  width: [document.documentElement.scrollWidth, window.innerWidth],
  outside: [...document.querySelectorAll("main *")].filter(isOutside).map((element) => element.outerHTML.slice(0, 80)),
  dark: luminance(getComputedStyle(document.body).backgroundColor) < 0.1,
  svg: [...document.querySelectorAll("figure > svg")].map((svg) => svg.getBoundingClientRect().width),
  mesh: document.querySelector("#mesh-picture svg").getBoundingClientRect().width,
  small: Math.min(...letters.map((text) => text.getBoundingClientRect().height)),
};
