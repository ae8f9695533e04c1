// What the site's pages do beyond what its theme does. Each page can be read without it.
'use strict';

{ // the theme has names of its own
	// A code or table that is wider than the page scrolls, so the keyboard has to reach it.
	function reach({ target }) {
		const wide = target.scrollWidth > target.clientWidth;
		for (const [name, value] of [['tabindex', '0'], ['role', 'region'], ['aria-label', target.matches('code') ? 'Code' : 'Table']]) {
			if (!wide) target.removeAttribute(name);
			else if (target.getAttribute(name) !== value) target.setAttribute(name, value);
		}
	}
	const sizes = new ResizeObserver((entries) => entries.forEach(reach));
	const changes = new MutationObserver((records) => records.forEach(reach)); // the theme takes it away where it finds no mouse

	// A cell is compared by the number that it begins with, if each cell of its column begins with one.
	const key = (row, column) => row.cells[column]?.textContent.trim() ?? '';
	const number = (text) => parseFloat(text.replace(/^[^\d.+-]*/, '').replaceAll(',', ''));

	function sort(table, column) {
		const heading = table.tHead.rows[0].cells[column], body = table.tBodies[0], rows = [...body.rows];
		const sign = heading.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
		const numeric = rows.every((row) => /^[<>≤≥~±+-]?\s*\d/.test(key(row, column)));
		const compare = numeric
			? (a, b) => number(key(a, column)) - number(key(b, column))
			: (a, b) => key(a, column).localeCompare(key(b, column), 'en', { numeric: true });
		body.append(...rows.sort((a, b) => sign * compare(a, b)));
		for (const cell of table.tHead.rows[0].cells) cell.removeAttribute('aria-sort');
		heading.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
	}

	// Only a long table is worth sorting.
	function sortable(table) {
		if (!table.tHead || table.tBodies[0].rows.length < 12) return;
		[...table.tHead.rows[0].cells].forEach((cell, column) => {
			if (!cell.textContent.trim() || cell.querySelector('a')) return;
			const button = document.createElement('button');
			button.type = 'button';
			button.append(...cell.childNodes);
			button.addEventListener('click', () => sort(table, column));
			cell.append(button);
		});
	}

	// Some buttons of the theme are labels of boxes that the keyboard does not reach.
	function pressable(label) {
		const box = document.getElementById(label.htmlFor);
		const tell = () => label.setAttribute('aria-expanded', box.checked);
		label.tabIndex = 0;
		label.setAttribute('role', 'button');
		tell();
		box.addEventListener('change', tell);
		label.addEventListener('keydown', (event) => {
			if (event.key !== 'Enter' && event.key !== ' ') return;
			event.preventDefault();
			event.stopPropagation(); // the theme would press it once more
			label.click();
		});
	}

	addEventListener('load', () => {
		document.querySelectorAll('.md-sidebar-button').forEach((label) => label.setAttribute('aria-label', 'On this page'));
		document.querySelectorAll('.md-header__button[for="__drawer"], .md-header__button[for="__search"], .md-sidebar-button').forEach(pressable);
		document.querySelectorAll('.md-typeset table').forEach(sortable);
		document.querySelectorAll('pre > code, .md-typeset__scrollwrap').forEach((target) => {
			sizes.observe(target);
			changes.observe(target, { attributeFilter: ['tabindex'] });
		});
	});
}
