/** The style of the status page: light and dark by the reader's preference, no motion for those who want none. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --ground: light-dark(hsl(220 20% 98%), hsl(222 22% 9%));
  --panel: light-dark(white, hsl(222 20% 13%));
  --text: light-dark(hsl(222 30% 14%), hsl(220 20% 92%));
  --quiet: light-dark(hsl(222 10% 38%), hsl(220 12% 68%));
  --line: light-dark(hsl(220 16% 86%), hsl(222 14% 25%));
  --good: light-dark(hsl(150 65% 26%), hsl(150 50% 62%));
  --warn: light-dark(hsl(32 90% 30%), hsl(38 85% 64%));
  --bad: light-dark(hsl(355 70% 40%), hsl(355 85% 74%));
  --link: light-dark(hsl(220 75% 42%), hsl(215 90% 74%));
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: 1rem clamp(1rem, 4vw, 3rem);
  border-bottom: 1px solid var(--line); background: var(--panel); }
header p { margin: 0; }
h1 { margin: 0; font-size: 1.3rem; letter-spacing: -.01em; }
h2 { margin: 0 0 .6rem; font-size: 1rem; }
h3 { margin: 1rem 0 .4rem; font-size: .9rem; }
.small { margin: .6rem 0 0; font-size: .8rem; }
main { display: grid; gap: 1rem; padding: 1rem clamp(1rem, 4vw, 3rem) 3rem; max-width: 90rem; margin: auto; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; min-width: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; min-width: 46rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
tbody tr:last-child td, tbody tr:last-child th { border-bottom: 0; }
thead th { color: var(--quiet); font-weight: 500; font-size: .85rem; white-space: nowrap; }
tbody th { font-weight: 600; }
a { color: var(--link); }
.address, td.address, tbody th { font-family: ui-monospace, monospace; font-size: .9rem; overflow-wrap: anywhere; }
#moves th, #moves td { white-space: nowrap; }
.quiet { color: var(--quiet); }
.good { color: var(--good); }
.warn { color: var(--warn); }
.bad { color: var(--bad); }
.badge { border: 1px solid currentColor; border-radius: 99px; padding: .05rem .7rem; font-size: .85rem; }
.notice { margin: 0; padding: .7rem 1rem; border: 1px solid var(--bad); color: var(--bad); border-radius: 8px; }
.notice.good { border-color: var(--good); color: var(--good); }
.tag { border: 1px solid var(--line); border-radius: 4px; padding: 0 .35rem; margin-right: .3rem; font-size: .8rem; }
.lane { display: grid; grid-template-columns: 12rem 1fr; gap: .8rem; align-items: center; margin-bottom: .4rem; }
.lane .name { font-family: ui-monospace, monospace; font-size: .85rem; overflow: hidden; text-overflow: ellipsis; }
.track { position: relative; height: 1.7rem; border: 1px solid var(--line); border-radius: 4px; overflow: hidden; }
.span { position: absolute; top: 0; bottom: 0; padding: .15rem .4rem; font-size: .75rem; overflow: hidden;
  white-space: nowrap; border-left: 2px solid var(--panel);
  background: light-dark(hsl(var(--hue) 60% 84%), hsl(var(--hue) 45% 32%)); }
.nobody { min-width: 3px; padding: 0; border: 0;
  background: repeating-linear-gradient(135deg, transparent 0 4px, var(--bad) 4px 6px); }
.axis { display: flex; justify-content: space-between; margin: 0 0 0 12.8rem; color: var(--quiet);
  font-size: .75rem; }
#events { list-style: none; margin: 0; padding: 0; max-height: 20rem; overflow-y: auto; }
#events li { display: grid; grid-template-columns: 7rem 1fr; gap: .8rem; padding: .2rem 0; border-bottom: 1px solid var(--line); }
#events time { color: var(--quiet); font-variant-numeric: tabular-nums; }
.row { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: .5rem 0 0; }
.end { justify-content: flex-end; }
button, input, select { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line);
  border-radius: 6px; padding: .3rem .7rem; min-height: 2rem; }
button { cursor: pointer; }
button.danger { color: var(--bad); border-color: currentColor; }
body:not(.operator) .operation { display: none; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
dialog { color: var(--text); background: var(--panel); border: 1px solid var(--line); border-radius: 10px; max-width: 30rem; }
dialog::backdrop { background: hsl(222 30% 10% / 50%); }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--panel); padding: .3rem .6rem; }
.fresh { animation: fresh 2s ease-out; }
@keyframes fresh { from { background: hsl(45 90% 60% / 35%); } }
@media (prefers-reduced-motion: reduce) { .fresh { animation: none; } }
@media (max-width: 48rem) {
  .lane { grid-template-columns: 1fr; gap: .1rem; }
  .axis { margin-left: 0; }
  #events li { grid-template-columns: 1fr; gap: 0; }
  table { min-width: 0; }
  table, tbody, tr, td, tbody th { display: block; }
  thead { position: absolute; left: -99rem; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td, tbody th { border: 0; padding: .1rem 0; }
  #moves th, #moves td { white-space: normal; }
  td[data-label] { display: grid; grid-template-columns: 9rem 1fr; gap: .6rem; }
  td[data-label]::before { content: attr(data-label); color: var(--quiet); font: .85rem system-ui, sans-serif; }
  td[data-label=""] { display: block; }
  td[data-label=""]::before { content: none; }
  body:not(.operator) td.operation { display: none; }
  button, input, select { min-height: 2.75rem; }
}
`;
