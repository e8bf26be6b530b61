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
<div class="scroll" tabindex="0"><table>
<thead><tr><th scope="col">Name</th><th scope="col">Host</th><th scope="col">This node</th><th scope="col">Epoch</th>
<th scope="col">Hosted for</th><th scope="col">Last hand-over</th><th scope="col" class="operation">Operation</th></tr></thead>
<tbody id="singletons"></tbody>
</table></div>
</section>

<section aria-labelledby="timeline-title">
<h2 id="timeline-title">Hosts over the last two minutes</h2>
<div id="lanes"></div>
<p class="axis" aria-hidden="true"><span>2 min ago</span><span>1 min ago</span><span>now</span></p>
</section>

<section aria-labelledby="members-title">
<h2 id="members-title">Members</h2>
<div class="scroll" tabindex="0"><table>
<thead><tr><th scope="col">Address</th><th scope="col">Status</th><th scope="col">Age</th><th scope="col">Roles</th>
<th scope="col">Runtime</th><th scope="col">Reachable</th><th scope="col" class="operation">Operation</th></tr></thead>
<tbody id="members"></tbody>
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
