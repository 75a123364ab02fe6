/** The page's style sheet, for light and dark mode. Colour marks only states that need attention. */
export const STATUS_PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --line: #e3e6eb; --text: #1c2430; --quiet: #68727f; --water: #2f7fb8; --good: #2c8a5b; --bad: #c2473d; --warn: #a76a10;
}
@media (prefers-color-scheme: dark) {
  :root { --page: #10151b; --card: #171e26; --line: #263039; --text: #dde4eb; --quiet: #8a97a5; --water: #5aa9e0; --good: #58b98a; --bad: #e5786d; --warn: #d9a04a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
header, main { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { display: flex; align-items: baseline; gap: 12px; padding-top: 28px; }
h1 { font-size: 20px; font-weight: 600; margin: 0; }
#about, .id, dt, th, .note { color: var(--quiet); }
#state { margin-left: auto; }
#state::before, .mode::before { content: ""; display: inline-block; width: 8px; height: 8px; border-radius: 50%; margin-right: 8px; background: currentColor; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; margin: 20px 0; padding: 20px 24px; }
h2 { font-size: 17px; font-weight: 600; margin: 0; }
h3 { font-size: 13px; font-weight: 600; color: var(--quiet); margin: 20px 0 6px; }
.title { display: flex; align-items: baseline; gap: 10px; flex-wrap: wrap; }
.title .mode { margin-left: auto; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: 16px; margin: 18px 0 0; }
dt { font-size: 13px; } dd { margin: 0; font-size: 21px; font-weight: 500; } dd small { display: block; font-size: 13px; font-weight: 400; color: var(--quiet); }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 0 36px; }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th { text-align: left; font-weight: 400; font-size: 13px; }
th, td { padding: 4px 0; border-bottom: 1px solid var(--line); } tr:last-child td { border-bottom: 0; }
th:not(:first-child), td:not(:first-child) { text-align: right; }
td.bar { width: 34%; padding-left: 16px; }
td.bar i { display: block; height: 8px; border-radius: 4px; min-width: 2px; margin-left: auto; background: var(--water); }
svg { display: block; width: 100%; height: 34px; margin-top: 14px; } polyline { fill: none; stroke: var(--water); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
@media (max-width: 600px) { header { flex-wrap: wrap; } section { padding: 16px; } header, main { padding-left: 12px; padding-right: 12px; } }
`;
