/*
 * See style.h. Texts have a contrast of 7 to 1 and more with their ground, lines and bars
 * of more than 3 to 1, in both schemes.
 */
#include "report/page/style.h"

#include <stddef.h>

const char *const slc_page_style[] = {
    ":root{color-scheme:light dark;--ground:#fff;--panel:#f5f7f9;--text:#16202a;--dim:#445260;"
    "--rule:#d3dae1;--mark:#0b63a5;--soft:#5b9bd0;--warn:#fff3d6;--warn-rule:#9a6700}\n",
    "@media(prefers-color-scheme:dark){:root{--ground:#11161b;--panel:#1a2128;--text:#e8edf2;"
    "--dim:#b3bfca;--rule:#38434e;--mark:#7cc0f5;--soft:#4d8ab8;--warn:#33290f;"
    "--warn-rule:#d9a62e}}\n",
    "*{box-sizing:border-box}\n", "html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}\n",
    "@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}\n",
    "body{margin:0;background:var(--ground);color:var(--text);"
    "font:1rem/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\n",
    "header,main,footer{max-width:72rem;margin:0 auto;padding:0 1rem}\n",
    "header{padding-top:1.5rem}\n",
    "h1{font-size:1.7rem;line-height:1.2;margin:0 0 .25rem;overflow-wrap:anywhere}\n",
    "h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-bottom:.3rem;"
    "border-bottom:1px solid var(--rule)}\n",
    "h3{font-size:1rem;margin:0 0 .5rem}\n", ".two>div>div+div{margin-top:1.25rem}\n",
    "h4{font-size:.9rem;margin:0 0 .35rem;overflow-wrap:anywhere;align-self:end}\n",
    "h4 span{display:block;font-weight:400;color:var(--dim)}\n",
    "p{margin:.5rem 0;overflow-wrap:anywhere}\n",
    ".dim,.none,figcaption,footer{color:var(--dim)}\n", "a{color:var(--mark)}\n",
    ":focus-visible{outline:3px solid var(--mark);outline-offset:2px}\n",
    ".skip{position:absolute;left:-99rem}\n",
    ".skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.5rem 1rem;z-index:1}\n",
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;list-style:none;margin:.9rem 0 0;"
    "padding:0}\n",
    ".note{background:var(--warn);border-left:4px solid var(--warn-rule);padding:.6rem .9rem;"
    "margin:1rem 0;border-radius:0 4px 4px 0}\n",
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,8rem),1fr));"
    "gap:.75rem;margin:1.25rem 0 0;padding:0}\n",
    ".cards>div{background:var(--panel);border:1px solid var(--rule);border-radius:6px;"
    "padding:.6rem .6rem .6rem .7rem;min-width:0}\n",
    ".cards dt{font-size:.82rem;color:var(--dim)}\n",
    ".cards dd{margin:0;font-size:1.1rem;font-weight:600;font-variant-numeric:tabular-nums;"
    "overflow-wrap:anywhere}\n",
    ".cards>div:last-child{grid-column:1/-1}\n",
    "@media(min-width:40rem){.cards>div:last-child{grid-column:span 2}}\n",
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));"
    "gap:1rem 1.5rem;align-items:start}\n",
    ".two>*{min-width:0}\n", "figure{margin:0}\n",
    "figcaption{font-size:.9rem;margin-bottom:.25rem}\n",
    "svg{display:block;width:100%;height:auto}\n",
    "svg text{fill:var(--dim);font-size:12px;font-variant-numeric:tabular-nums}\n",
    "svg .name{font-size:12.5px;fill:var(--text)}\n",
    /* Plots shrink to a narrow window, their numbers are not to. */
    "@media screen and (max-width:34rem){svg text,svg .name{font-size:15px}}\n",
    ".end{text-anchor:end}.mid{text-anchor:middle}\n", ".grid{stroke:var(--rule);fill:none}\n",
    ".line{stroke:var(--mark);stroke-width:2;fill:none;stroke-linejoin:round}\n",
    "circle{fill:var(--mark)}.dot{fill:none;stroke:var(--soft);stroke-width:1.2}"
    ".chosen>*{font-weight:700}circle.chosen{stroke:var(--ground);stroke-width:1.5}\n",
    ".spark{height:44px;background:var(--panel);border:1px solid var(--rule);border-radius:3px}\n",
    ".spark path{vector-effect:non-scaling-stroke}\n",
    ".spark .bars{vector-effect:none;stroke:var(--mark);fill:none}\n",
    ".area{fill:var(--soft);stroke:var(--mark);stroke-width:1}\n",
    ".zero{stroke:var(--dim);stroke-dasharray:2 3;fill:none}\n",
    "table{border-collapse:collapse;width:100%;font-size:.92rem}\n",
    "th,td{text-align:left;padding:.22rem .75rem .22rem 0;vertical-align:top;"
    "border-bottom:1px solid var(--rule)}\n",
    "th{font-weight:500}\n", "thead th{color:var(--dim);font-size:.85rem}\n",
    "td{overflow-wrap:anywhere}\n", "td[dir]{text-align:left}\n",
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n",
    "th.n{padding-left:.5rem}.n+:not(.n){padding-left:.75rem}\n",
    ".bar{width:45%;padding-right:0}\n",
    ".bar span{display:block;margin-top:.25rem;height:.8rem;min-width:1px;background:var(--soft);"
    "border-radius:0 2px 2px 0;print-color-adjust:exact;-webkit-print-color-adjust:exact}\n",
    ".wide td,.wide tbody th{white-space:nowrap}.wide thead th{white-space:normal;"
    "vertical-align:bottom}\n",
    /* A shade at an end behind which there is more. */
    ".scroll{overflow-x:auto;max-height:26rem;overflow-y:auto;"
    "background:linear-gradient(var(--ground) 40%,transparent) top/100% 2rem no-repeat local,"
    "linear-gradient(transparent,var(--ground) 60%) bottom/100% 2rem no-repeat local,"
    "linear-gradient(var(--rule),transparent) top/100% .7rem no-repeat,"
    "linear-gradient(transparent,var(--rule)) bottom/100% .7rem no-repeat}\n",
    "pre{background:var(--panel);border:1px solid var(--rule);border-radius:6px;padding:.75rem;"
    "margin:.5rem 0;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.9rem}\n",
    "code,pre{font-family:ui-monospace,\"DejaVu Sans Mono\",monospace}\n",
    "summary{cursor:pointer;padding:.35rem 0;font-weight:600}\n", "details{margin:.4rem 0}\n",
    ".component{border:1px solid var(--rule);border-radius:6px;padding:.1rem .9rem}\n",
    ".modes{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr));"
    "gap:0 1.5rem;padding:.3rem 0 .8rem}\n",
    /* Headings, pictures and tables of neighbours begin at the same height. */
    ".modes>*{min-width:0;display:grid;grid-template-rows:subgrid;grid-row:span 3;"
    "padding-bottom:1rem}\n",
    ".modes table{margin-top:.35rem;font-size:.88rem;align-self:start}\n",
    "footer{padding-top:2rem;padding-bottom:2rem;font-size:.88rem}\n",
    "@media print{:root{--ground:#fff;--panel:#fff;--text:#000;--dim:#333;--rule:#bbb;"
    "--mark:#0b4f86;--soft:#7fb0d6;--warn:#fff;color-scheme:light}"
    ":root{font-size:11px}nav,.skip{display:none}.scroll{max-height:none;overflow:visible;"
    "background:none}"
    ".two{grid-template-columns:1fr 1fr}h2{margin-top:1.5rem}th,td{padding:.1rem .6rem .1rem 0}"
    ".modes{grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:0 1rem}"
    "figure,tr,.component,.cards>div,[aria-labelledby=ranks]{break-inside:avoid}h2,h3,summary{"
    "break-after:avoid}"
    "details::details-content{content-visibility:visible;display:block}}\n",
    NULL};
