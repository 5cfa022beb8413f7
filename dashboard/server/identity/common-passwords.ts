/** Words and passwords that guessing programs try first. A text of 12 characters or more is common if it is one of them with digits around. */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  `password passwort passw0rd p@ssword p@ssw0rd passwordpassword password1234 mypassword mypassword123 yourpassword newpassword oldpassword
  changeme changemenow changeit letmein letmeinnow welcome welcomeback welcome1234 iloveyou iloveyouforever iloveyousomuch qwerty qwertyuiop
  qwertyuiopas qwerty123456 qwertzuiop qwertzuiopu azertyuiop asdfghjkl asdfghjklzxc zxcvbnm zxcvbnmasdfg 1q2w3e4r5t6y 1qaz2wsx3edc
  zaq12wsxcde3 qazwsxedcrfv q1w2e3r4t5y6 abcdefghijkl abcdefghijklm abc123abc123 administrator administrador admin adminadmin admin1234
  rootroot superuser superman batman spiderman starwars pokemon princess sunshine football baseball basketball monkey dragon master shadow
  michael jennifer jordan charlie computer internet samsung google facebook microsoft minecraft whatever trustno1 dontforget
  secret secretsecret topsecret supersecret verysecret test testtest testing testpassword demo demodemo default guest guestguest user username
  correcthorsebatterystaple correct horse battery staple headgate headgateheadgate kubernetes openai anthropic chatgpt`.split(/\s+/),
)
