/** The skeleton of the status page; the script fills it. It reads well without the script's styles, and without a mouse. */
export const pageBody = `<a class="skip" href="#singletons-title">To the singletons</a>
<header>
<h1>Singlet</h1>
<p id="self" class="address">…</p>
<p id="ready" class="badge" role="status">…</p>
<p id="feed" class="badge" role="status">connecting</p>
</header>
<main>
<p id="notice" class="notice" role="alert" hidden></p>
<noscript><p class="notice">This page needs JavaScript; its data is at <a href="cluster/members">/cluster/members</a>
and <a href="cluster/singletons">/cluster/singletons</a>.</p></noscript>

<section aria-labelledby="singletons-title">
<h2 id="singletons-title" tabindex="-1">Singletons</h2>
<div class="scroll" tabindex="0" role="region" aria-labelledby="singletons-title"><table role="table">
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Name</th><th scope="col" role="columnheader">Host</th>
<th scope="col" role="columnheader">This node</th><th scope="col" role="columnheader">Epoch</th>
<th scope="col" role="columnheader">Hosted for</th><th scope="col" role="columnheader">Messages per second</th>
<th scope="col" role="columnheader">Buffered</th><th scope="col" role="columnheader" class="operation">Operation</th></tr></thead>
<tbody id="singletons" role="rowgroup"></tbody>
</table></div>
<p class="quiet small">Messages and buffer are those of this node: what is sent from here, and what an instance here handles.</p>
</section>

<section aria-labelledby="timeline-title">
<h2 id="timeline-title">Hosts over the last two minutes</h2>
<div id="lanes"></div>
<p class="axis" aria-hidden="true"><span>2 min ago</span><span>1 min ago</span><span>now</span></p>
<p class="quiet small">Hatched: nobody hosts it, as this node sees it. Empty: from before this page was opened.</p>
<h3 id="moves-title">Moves</h3>
<div class="scroll" tabindex="0" role="region" aria-labelledby="moves-title"><table role="table">
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Time</th><th scope="col" role="columnheader">Singleton</th>
<th scope="col" role="columnheader">From</th><th scope="col" role="columnheader">To</th><th scope="col" role="columnheader">Why</th>
<th scope="col" role="columnheader">Gap</th><th scope="col" role="columnheader">Epoch</th></tr></thead>
<tbody id="moves" role="rowgroup"></tbody>
</table></div>
</section>

<section aria-labelledby="members-title">
<h2 id="members-title">Members</h2>
<div class="scroll" tabindex="0" role="region" aria-labelledby="members-title"><table role="table">
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Address</th><th scope="col" role="columnheader">Status</th>
<th scope="col" role="columnheader">Age</th><th scope="col" role="columnheader">Roles</th>
<th scope="col" role="columnheader">Runtime</th><th scope="col" role="columnheader">Reachable</th>
<th scope="col" role="columnheader" class="operation">Operation</th></tr></thead>
<tbody id="members" role="rowgroup"></tbody>
</table></div>
</section>

<section aria-labelledby="events-title">
<h2 id="events-title">Events</h2>
<ol id="events" aria-live="polite" aria-relevant="additions"></ol>
</section>

<section aria-labelledby="operations-title">
<h2 id="operations-title">Operations</h2>
<p>Moving, downing and leaving need the token of this node. It stays in this tab.</p>
<p class="row"><label for="token">Token</label>
<input id="token" type="password" autocomplete="off" spellcheck="false">
<button type="button" id="leave" class="operation danger">Make this node leave</button></p>
</section>
</main>
<dialog id="confirm" aria-labelledby="confirm-title">
<h2 id="confirm-title">…</h2>
<p id="confirm-text"></p>
<p id="confirm-target" class="row" hidden><label for="target">To</label> <select id="target"></select></p>
<p class="row end"><button type="button" id="cancel">Cancel</button>
<button type="button" id="proceed" class="danger">…</button></p>
</dialog>`;
