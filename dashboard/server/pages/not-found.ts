/** The same page for a path that does not exist and for a thing of somebody else. */
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

export function notFoundPage(site: Site): Html {
  const main = html`<h1>There is nothing here</h1>
    <p class="lead">The page does not exist, or belongs to another account.</p>
    <div class="choices"><a class="button" href="/">Go to Overview</a></div>`
  return door(site, { title: 'Not found', main })
}
