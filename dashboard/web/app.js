// Keeps a page up to date: the server sends the parts that have changed, as HTML that it has escaped. What stays the same
// stays in the document, so that focus, selection and scroll do.
'use strict';

const silence = 40_000; // milliseconds after which a stream is dead: the server sends something every 15 seconds
let stream = null;
let heard = 0;
let lost = null; // since when there is no stream
let again = 0;

const clock = (at) => at.toLocaleTimeString([], {hour: '2-digit', minute: '2-digit', second: '2-digit'});

// tell says that what is shown is not of now, or that it is again.
function tell(text) {
	const link = document.getElementById('link');
	document.getElementById('state').hidden = text !== '';
	link.hidden = text === '';
	if (link.textContent !== text) link.textContent = text;
	document.body.classList.toggle('lost', text !== '');
}

function alive() {
	heard = Date.now();
	lost = null;
	tell('');
}

function missed() {
	lost ??= new Date();
	tell(`Connection lost at ${clock(lost)}, trying again`);
}

function open() {
	close();
	heard = Date.now();
	stream = new EventSource(document.body.dataset.events);
	stream.addEventListener('alive', alive);
	stream.addEventListener('look', (event) => {
		alive();
		for (const [id, html] of Object.entries(JSON.parse(event.data))) {
			const part = document.getElementById(id);
			if (part) replace(part, html);
		}
	});
	stream.onerror = () => {
		missed();
		// A browser does not try again by itself when it was refused.
		if (stream.readyState === EventSource.CLOSED) {
			again = setTimeout(open, 5000);
			refused();
		}
	};
}

// refused tells why the server has no stream for this page, if it says so.
async function refused() {
	const asked = new AbortController();
	try {
		const answer = await fetch(document.body.dataset.events, {signal: asked.signal});
		if (answer.status === 503) tell(`Not live: ${(await answer.text()).trim()}`);
	} catch {
		// the connection is lost
	}
	asked.abort();
}

function close() {
	clearTimeout(again);
	if (stream) stream.close();
	stream = null;
}

// replace makes the children of an element those of some HTML.
function replace(element, html) {
	const made = document.createElement('template');
	made.innerHTML = html;
	const focused = document.activeElement;
	children(element, made.content);
	// What was moved has lost the focus.
	if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
}

// children makes those of one node like those of another. Elements with the same id, or else in the same place, are kept.
function children(old, made) {
	const known = new Map();
	for (const child of old.children) if (child.id) known.set(child.id, child);
	let at = old.firstChild;
	for (const next of [...made.childNodes]) {
		let match = next.id ? known.get(next.id) : at;
		if (match && !next.id && match.id) match = null;
		if (!match || match.nodeType !== next.nodeType || match.nodeName !== next.nodeName) {
			old.insertBefore(next, at);
			continue;
		}
		if (match === at) at = at.nextSibling;
		else old.insertBefore(match, at);
		if (next.nodeType === Node.ELEMENT_NODE) {
			attributes(match, next);
			children(match, next);
		} else if (match.nodeValue !== next.nodeValue) {
			match.nodeValue = next.nodeValue;
		}
	}
	while (at) {
		const gone = at;
		at = at.nextSibling;
		gone.remove();
	}
}

function attributes(old, made) {
	for (const {name} of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
	for (const {name, value} of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

// Nobody looks at a page that is hidden: the server need not be asked for it.
document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
addEventListener('pagehide', close);
addEventListener('pageshow', (event) => event.persisted && open());
setInterval(() => {
	if (stream && Date.now() - heard > silence) {
		missed();
		open();
	}
}, 5000);
document.addEventListener('keydown', (event) => {
	const typing = event.target.matches('input, textarea, select');
	if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
		const filter = document.getElementById('filter');
		if (filter) {
			event.preventDefault();
			filter.focus();
		}
	}
});
if (!document.hidden) open();
