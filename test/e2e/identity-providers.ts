/**
 * The identity providers of the cluster, as one program: GitHub and Google are the stand-ins of `examples/stub-identity`, and Acme is a strict
 * issuer. Each listens on a port of its own. DASHBOARD_URL is the origin of their only client.
 */
import { createStubGitHub } from '../../examples/stub-identity/github.ts'
import { createStubOidc } from '../../examples/stub-identity/oidc.ts'
import { OidcServer } from '../support/oidc-server.ts'

const GITHUB_PORT = 8081
const GOOGLE_PORT = 8082
const ACME_PORT = 8083

const { DASHBOARD_URL: dashboard = '', CLIENT_SECRET: secret = '' } = process.env
const client = (provider: string) => ({ id: 'headgate', secret, redirectURIs: [`${dashboard}/api/auth/callback/${provider}`] })

createStubGitHub({ client: client('github') }).listen(GITHUB_PORT)
createStubOidc({ client: client('google'), issuer: 'http://google.front.svc' }).listen(GOOGLE_PORT)
await OidcServer.start({
  client: client('acme'),
  people: { maya: { email: 'maya@fernwood.example', name: 'Maya', emailVerified: true } },
  at: { issuer: 'http://acme.front.svc', port: ACME_PORT },
})
