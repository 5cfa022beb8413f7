/** All routes of the dashboard. A route of a signed-in person names what its role must be allowed. */
import {
  getKey,
  getKeys,
  getPlan,
  patchKey,
  postEndFormer,
  postKey,
  postReplace,
  postResume,
  postRevoke,
  postSuspend,
} from './routes/keys.ts'
import { deleteProvider, deleteSession, getMe, getProviders, getSessions, patchMe, postBackupCodes, postConfirm } from './routes/person.ts'
import { postEmail, postEndOthers, postPassword, postProviderLink, postSignOut, postTwoFactorConfirm } from './routes/person.ts'
import { postTwoFactorOff, postTwoFactorStart } from './routes/person.ts'
import { getExport, postAccountDelete } from './routes/own-data.ts'
import type { Route } from './routes/route.ts'
import { getCallback, postNewPassword, postProvider, postReset, postSignIn, postTwoFactor, showNewPassword } from './routes/sign-in.ts'
import { showReset, showSignIn, showTwoFactor } from './routes/sign-in.ts'
import { postCheckYourMail, postSignUp, postVerify, showCheckYourMail, showSignUp, showVerify } from './routes/sign-up.ts'
import { AUTH_PATH } from './identity/auth.ts'
import { MONEY_ROUTES } from './usage/routes.ts'

export const ROUTES: readonly Route[] = [
  { method: 'GET', path: '/sign-up', access: 'anyone', handler: showSignUp },
  { method: 'POST', path: '/sign-up', access: 'anyone', needsPasswords: true, handler: postSignUp },
  { method: 'GET', path: '/check-your-mail', access: 'anyone', needsPasswords: true, handler: showCheckYourMail },
  { method: 'POST', path: '/check-your-mail', access: 'anyone', needsPasswords: true, handler: postCheckYourMail },
  { method: 'GET', path: '/verify', access: 'anyone', handler: showVerify },
  { method: 'POST', path: '/verify', access: 'anyone', handler: postVerify },
  { method: 'GET', path: '/sign-in', access: 'anyone', handler: showSignIn },
  { method: 'POST', path: '/sign-in', access: 'anyone', needsPasswords: true, handler: postSignIn },
  { method: 'POST', path: '/sign-in/:provider', access: 'anyone', handler: postProvider },
  { method: 'GET', path: `${AUTH_PATH}/callback/:provider`, access: 'anyone', handler: getCallback },
  { method: 'GET', path: '/two-factor', access: 'anyone', handler: showTwoFactor },
  { method: 'POST', path: '/two-factor', access: 'anyone', handler: postTwoFactor },
  { method: 'GET', path: '/reset', access: 'anyone', needsPasswords: true, handler: showReset },
  { method: 'POST', path: '/reset', access: 'anyone', needsPasswords: true, handler: postReset },
  { method: 'GET', path: '/reset/new', access: 'anyone', needsPasswords: true, handler: showNewPassword },
  { method: 'POST', path: '/reset/new', access: 'anyone', needsPasswords: true, handler: postNewPassword },

  { method: 'GET', path: '/api/me', access: 'account.read', handler: getMe },
  { method: 'PATCH', path: '/api/me', access: 'person.edit', handler: patchMe },
  { method: 'POST', path: '/api/sign-out', access: 'person.edit', handler: postSignOut },
  { method: 'POST', path: '/api/confirm', access: 'person.edit', handler: postConfirm },
  { method: 'POST', path: '/api/email', access: 'person.edit', isSensitive: true, handler: postEmail },
  { method: 'POST', path: '/api/password', access: 'person.edit', isSensitive: true, needsPasswords: true, handler: postPassword },
  { method: 'GET', path: '/api/providers', access: 'person.edit', handler: getProviders },
  { method: 'POST', path: '/api/providers/:provider/link', access: 'person.edit', isSensitive: true, handler: postProviderLink },
  { method: 'DELETE', path: '/api/providers/:provider', access: 'person.edit', isSensitive: true, handler: deleteProvider },
  { method: 'GET', path: '/api/sessions', access: 'person.edit', handler: getSessions },
  { method: 'DELETE', path: '/api/sessions/:session', access: 'person.edit', handler: deleteSession },
  { method: 'POST', path: '/api/sessions/end-others', access: 'person.edit', handler: postEndOthers },
  { method: 'POST', path: '/api/two-factor/start', access: 'person.edit', isSensitive: true, handler: postTwoFactorStart },
  { method: 'POST', path: '/api/two-factor/confirm', access: 'person.edit', isSensitive: true, handler: postTwoFactorConfirm },
  { method: 'POST', path: '/api/two-factor/off', access: 'person.edit', isSensitive: true, handler: postTwoFactorOff },
  { method: 'POST', path: '/api/two-factor/backup-codes', access: 'person.edit', isSensitive: true, handler: postBackupCodes },
  { method: 'GET', path: '/api/keys', access: 'keys.read', handler: getKeys },
  { method: 'POST', path: '/api/keys', access: 'keys.edit', handler: postKey },
  { method: 'GET', path: '/api/keys/:key', access: 'keys.read', handler: getKey },
  { method: 'PATCH', path: '/api/keys/:key', access: 'keys.edit', handler: patchKey },
  { method: 'POST', path: '/api/keys/:key/suspend', access: 'keys.edit', handler: postSuspend },
  { method: 'POST', path: '/api/keys/:key/resume', access: 'keys.edit', handler: postResume },
  { method: 'POST', path: '/api/keys/:key/revoke', access: 'keys.edit', handler: postRevoke },
  { method: 'POST', path: '/api/keys/:key/replace', access: 'keys.edit', handler: postReplace },
  { method: 'POST', path: '/api/keys/:key/end-former', access: 'keys.edit', handler: postEndFormer },
  { method: 'GET', path: '/api/plan', access: 'account.read', handler: getPlan },

  { method: 'GET', path: '/api/export', access: 'account.read', handler: getExport },
  { method: 'POST', path: '/api/account/delete', access: 'account.delete', isSensitive: true, handler: postAccountDelete },

  ...MONEY_ROUTES,
]
