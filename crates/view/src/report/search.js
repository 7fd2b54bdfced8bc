// Shows the rows and boxes of a report whose names have a text in them.
const box = document.getElementById('search');
const found = document.getElementById('found');
const low = (text) => text.toLowerCase();
const rects = [...document.querySelectorAll('rect')].map((rect) => [rect, low(rect.textContent)]);
const rows = [...document.querySelectorAll('tr')].filter((row) => row.querySelector('td'))
  .map((row) => [row, low(row.cells[0].textContent)]);

const search = () => {
  const text = low(box.value.trim());
  const has = ([, name]) => name.includes(text);
  for (const rect of rects) rect[0].classList.toggle('off', text !== '' && !has(rect));
  for (const row of rows) row[0].style.display = text === '' ? '' : has(row) ? 'table-row' : 'none';
  const count = (all, one, many) => `${all.filter(has).length} ${all.filter(has).length === 1 ? one : many}`;
  found.textContent = text === '' ? '' : `${count(rows, 'row', 'rows')}, ${count(rects, 'box', 'boxes')}`;
};

box.hidden = false;
box.addEventListener('input', search);
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && event.target !== box) {
    event.preventDefault();
    box.focus();
  }
  if (event.key === 'Escape' && event.target === box) {
    box.value = '';
    search();
    box.blur();
  }
});
