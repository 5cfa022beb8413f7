CREATE TABLE public.account (
    id text NOT NULL,
    "accountId" text NOT NULL,
    "providerId" text NOT NULL,
    "userId" text NOT NULL,
    "accessToken" text,
    "refreshToken" text,
    "idToken" text,
    "accessTokenExpiresAt" timestamp with time zone,
    "refreshTokenExpiresAt" timestamp with time zone,
    scope text,
    password text,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone NOT NULL
);
CREATE TABLE public."headgateMember" (
    "userId" text NOT NULL,
    "accountName" text NOT NULL,
    role text NOT NULL,
    "confirmedAt" bigint,
    "deletingAt" bigint,
    "emailDueAt" bigint,
    "createdAt" bigint NOT NULL
);
CREATE TABLE public."headgateOutbox" (
    id text NOT NULL,
    sealed text NOT NULL,
    attempts integer NOT NULL,
    "dueAt" bigint NOT NULL,
    "createdAt" bigint NOT NULL
);
CREATE TABLE public."headgateProof" (
    "sessionId" text NOT NULL,
    "provenAt" bigint NOT NULL
);
CREATE TABLE public."headgateThrottle" (
    key text NOT NULL,
    count integer NOT NULL,
    "startedAt" bigint NOT NULL,
    "lastAt" bigint NOT NULL
);
CREATE TABLE public."headgateUsedCode" (
    "userId" text NOT NULL,
    code text NOT NULL,
    "usedAt" bigint NOT NULL
);
CREATE TABLE public."headgateVersion" (
    id integer NOT NULL,
    version integer NOT NULL
);
CREATE TABLE public."rateLimit" (
    id text NOT NULL,
    key text NOT NULL,
    count integer NOT NULL,
    "lastRequest" bigint NOT NULL
);
CREATE TABLE public.session (
    id text NOT NULL,
    "expiresAt" timestamp with time zone NOT NULL,
    token text NOT NULL,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone NOT NULL,
    "ipAddress" text,
    "userAgent" text,
    "userId" text NOT NULL
);
CREATE TABLE public."twoFactor" (
    id text NOT NULL,
    secret text NOT NULL,
    "backupCodes" text NOT NULL,
    "userId" text NOT NULL,
    verified boolean,
    "failedVerificationCount" integer,
    "lockedUntil" timestamp with time zone
);
CREATE TABLE public."user" (
    id text NOT NULL,
    name text NOT NULL,
    email text NOT NULL,
    "emailVerified" boolean NOT NULL,
    image text,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "twoFactorEnabled" boolean
);
CREATE TABLE public.verification (
    id text NOT NULL,
    identifier text NOT NULL,
    value text NOT NULL,
    "expiresAt" timestamp with time zone NOT NULL,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public."headgateMember"
    ADD CONSTRAINT "headgateMember_accountName_key" UNIQUE ("accountName");
ALTER TABLE ONLY public."headgateMember"
    ADD CONSTRAINT "headgateMember_pkey" PRIMARY KEY ("userId");
ALTER TABLE ONLY public."headgateOutbox"
    ADD CONSTRAINT "headgateOutbox_pkey" PRIMARY KEY (id);
ALTER TABLE ONLY public."headgateProof"
    ADD CONSTRAINT "headgateProof_pkey" PRIMARY KEY ("sessionId");
ALTER TABLE ONLY public."headgateThrottle"
    ADD CONSTRAINT "headgateThrottle_pkey" PRIMARY KEY (key);
ALTER TABLE ONLY public."headgateUsedCode"
    ADD CONSTRAINT "headgateUsedCodeKey" PRIMARY KEY ("userId", code);
ALTER TABLE ONLY public."headgateVersion"
    ADD CONSTRAINT "headgateVersion_pkey" PRIMARY KEY (id);
ALTER TABLE ONLY public."rateLimit"
    ADD CONSTRAINT "rateLimit_key_key" UNIQUE (key);
ALTER TABLE ONLY public."rateLimit"
    ADD CONSTRAINT "rateLimit_pkey" PRIMARY KEY (id);
ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_token_key UNIQUE (token);
ALTER TABLE ONLY public."twoFactor"
    ADD CONSTRAINT "twoFactor_pkey" PRIMARY KEY (id);
ALTER TABLE ONLY public."user"
    ADD CONSTRAINT user_email_key UNIQUE (email);
ALTER TABLE ONLY public."user"
    ADD CONSTRAINT user_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.verification
    ADD CONSTRAINT verification_pkey PRIMARY KEY (id);
CREATE INDEX "account_userId_idx" ON public.account USING btree ("userId");
CREATE INDEX "headgateOutboxDue" ON public."headgateOutbox" USING btree ("dueAt");
CREATE INDEX "session_userId_idx" ON public.session USING btree ("userId");
CREATE INDEX "twoFactor_secret_idx" ON public."twoFactor" USING btree (secret);
CREATE INDEX "twoFactor_userId_idx" ON public."twoFactor" USING btree ("userId");
CREATE INDEX verification_identifier_idx ON public.verification USING btree (identifier);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT "account_userId_fkey" FOREIGN KEY ("userId") REFERENCES public."user"(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.session
    ADD CONSTRAINT "session_userId_fkey" FOREIGN KEY ("userId") REFERENCES public."user"(id) ON DELETE CASCADE;
ALTER TABLE ONLY public."twoFactor"
    ADD CONSTRAINT "twoFactor_userId_fkey" FOREIGN KEY ("userId") REFERENCES public."user"(id) ON DELETE CASCADE;
INSERT INTO "user" ("id", "name", "email", "emailVerified", "image", "createdAt", "updatedAt", "twoFactorEnabled") VALUES ('Hv4u8KYjm9Yl2lHjsORQwWZmKoy6yvdu', 'Maya', 'maya@fernwood.example', true, NULL, '2026-11-27T16:26:53.790Z', '2026-11-27T16:26:53.970Z', false);
INSERT INTO "user" ("id", "name", "email", "emailVerified", "image", "createdAt", "updatedAt", "twoFactorEnabled") VALUES ('KAGW5RE96vBIe9wOXL1MM45ToX0uildC', '', 'noor@fernwood.example', true, NULL, '2026-11-27T16:26:53.945Z', '2026-11-27T16:26:54.001Z', true);
INSERT INTO "user" ("id", "name", "email", "emailVerified", "image", "createdAt", "updatedAt", "twoFactorEnabled") VALUES ('GG01fC2F6a8Rctc4Nxs5oHVoOs6j6doM', 'sam', 'sam@fernwood.example', true, NULL, '2026-11-27T16:26:54.160Z', '2026-11-27T16:26:54.160Z', false);
INSERT INTO "user" ("id", "name", "email", "emailVerified", "image", "createdAt", "updatedAt", "twoFactorEnabled") VALUES ('S26Zvn59U42DbJq4Z6mrBbyckin22sGG', '', 'kim@fernwood.example', false, NULL, '2026-11-27T16:26:54.198Z', '2026-11-27T16:26:54.198Z', false);
INSERT INTO "account" ("id", "accountId", "providerId", "userId", "accessToken", "refreshToken", "idToken", "accessTokenExpiresAt", "refreshTokenExpiresAt", "scope", "password", "createdAt", "updatedAt") VALUES ('y3gNFGn64dYoWcILUc8sBCmBhcwxHzaN', 'Hv4u8KYjm9Yl2lHjsORQwWZmKoy6yvdu', 'credential', 'Hv4u8KYjm9Yl2lHjsORQwWZmKoy6yvdu', NULL, NULL, NULL, NULL, NULL, NULL, '$argon2id$v=19$m=19456,t=2,p=1$FDekamL1QtP0MecUEQLscA$W9mr7zDA45k+r4tleBjvIPCUBUSJkfs6h20De1uFNZA', '2026-11-27T16:26:53.791Z', '2026-11-27T16:26:53.791Z');
INSERT INTO "account" ("id", "accountId", "providerId", "userId", "accessToken", "refreshToken", "idToken", "accessTokenExpiresAt", "refreshTokenExpiresAt", "scope", "password", "createdAt", "updatedAt") VALUES ('U7BRejyae96nAQKSdWFac69ySlptBJrl', 'KAGW5RE96vBIe9wOXL1MM45ToX0uildC', 'credential', 'KAGW5RE96vBIe9wOXL1MM45ToX0uildC', NULL, NULL, NULL, NULL, NULL, NULL, '$argon2id$v=19$m=19456,t=2,p=1$sd/+VEbufVpjL3EOmMY+nA$vD84zjWZrJ+W8c2tZdePM9Wahd5sDNg+lVg5sZ/dDRQ', '2026-11-27T16:26:53.945Z', '2026-11-27T16:26:53.945Z');
INSERT INTO "account" ("id", "accountId", "providerId", "userId", "accessToken", "refreshToken", "idToken", "accessTokenExpiresAt", "refreshTokenExpiresAt", "scope", "password", "createdAt", "updatedAt") VALUES ('sz9PLmevLvQHg0xCje1UHUIhf1nm9eJP', '80509635766282', 'github', 'GG01fC2F6a8Rctc4Nxs5oHVoOs6j6doM', NULL, NULL, NULL, NULL, NULL, 'read:user,user:email', NULL, '2026-11-27T16:26:54.160Z', '2026-11-27T16:26:54.160Z');
INSERT INTO "account" ("id", "accountId", "providerId", "userId", "accessToken", "refreshToken", "idToken", "accessTokenExpiresAt", "refreshTokenExpiresAt", "scope", "password", "createdAt", "updatedAt") VALUES ('KHaakW6DzwWIHLf8C3YACd336jqMk2Et', 'S26Zvn59U42DbJq4Z6mrBbyckin22sGG', 'credential', 'S26Zvn59U42DbJq4Z6mrBbyckin22sGG', NULL, NULL, NULL, NULL, NULL, NULL, '$argon2id$v=19$m=19456,t=2,p=1$EiOVQIJVhWzJIRhhERoLfQ$iaYqyzEYBx69SSu2iQOs0kWncJKznZQZE/kwog8ObMY', '2026-11-27T16:26:54.198Z', '2026-11-27T16:26:54.198Z');
INSERT INTO "headgateMember" ("userId", "accountName", "role", "confirmedAt", "deletingAt", "emailDueAt", "createdAt") VALUES ('Hv4u8KYjm9Yl2lHjsORQwWZmKoy6yvdu', 'u-1d2d34cb161d91295f48', 'owner', 1795796813891, NULL, NULL, 1795796813889);
INSERT INTO "headgateMember" ("userId", "accountName", "role", "confirmedAt", "deletingAt", "emailDueAt", "createdAt") VALUES ('KAGW5RE96vBIe9wOXL1MM45ToX0uildC', 'u-81267effb472a2c0afb6', 'owner', 1795796813963, NULL, NULL, 1795796813962);
INSERT INTO "headgateMember" ("userId", "accountName", "role", "confirmedAt", "deletingAt", "emailDueAt", "createdAt") VALUES ('GG01fC2F6a8Rctc4Nxs5oHVoOs6j6doM', 'u-238911e8f102150acf8f', 'owner', 1795796814166, NULL, NULL, 1795796814165);
INSERT INTO "headgateOutbox" ("id", "sealed", "attempts", "dueAt", "createdAt") VALUES ('870a8f99-ea73-4632-bea9-500d49ed92ce', 'SKi9WxygpjXGhDB2vJ_Bh4wRWXh-yP8YDrx8EcP6HRPlvmyvclSVrG_f9Q2l2cfh-IBEgJA5EbC1VSTu6ZU8bY24yqrO6X8NECu4CtylxQxjUlPibaQLrbKiPFebwcN8F-J-Bg', 1, 1795796829273, 1795796814236);
INSERT INTO "headgateThrottle" ("key", "count", "startedAt", "lastAt") VALUES ('mail-sign-up:PQAY72d3e01ghV5_cnmH46DXuGI4s5HefniJ4FK962s', 1, 1795796813662, 1795796813662);
INSERT INTO "headgateThrottle" ("key", "count", "startedAt", "lastAt") VALUES ('mail-sign-up:OloCaLRDLqEzG2RAMmTldGQ6P3wTItZQL_K1l34stG8', 1, 1795796813897, 1795796813897);
INSERT INTO "headgateThrottle" ("key", "count", "startedAt", "lastAt") VALUES ('mail-sign-up:eYiz7ipzwjDqPJXYnDmQp8rOM8lsCes6PEcv4kwO8-0', 1, 1795796814168, 1795796814168);
INSERT INTO "headgateThrottle" ("key", "count", "startedAt", "lastAt") VALUES ('mail-reset:PQAY72d3e01ghV5_cnmH46DXuGI4s5HefniJ4FK962s', 1, 1795796814204, 1795796814204);
INSERT INTO "headgateUsedCode" ("userId", "code", "usedAt") VALUES ('KAGW5RE96vBIe9wOXL1MM45ToX0uildC', 'Fw8qD4vBxHGMVklJBhJYA5cku4tTaQDYM6Gdbu3ah9o', 1795796814005);
INSERT INTO "headgateUsedCode" ("userId", "code", "usedAt") VALUES ('KAGW5RE96vBIe9wOXL1MM45ToX0uildC', 'JdkUiUUj0iy59xzT5owj7ocpPKIj2uK7UtiefSX3XSE', 1795796814075);
INSERT INTO "headgateVersion" ("id", "version") VALUES (1, 1);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('Coenv21TjxHcIUXQE78RZfGBaGghuDmt', '198.51.0.1|/sign-up/email', 1, 1795796813736);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('GbmcsRFlgTvQUosTZGcaAnoE4aodlw43', '198.51.0.1|/verify-email', 1, 1795796813869);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('9Dj8WJpTlvvBWfEFNPFfaO1LpDRS3R1Y', '198.51.0.2|/sign-up/email', 1, 1795796813900);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('Ra2r4IdUCL0l210NLuOc0xr1mQvxcsmj', '198.51.0.2|/verify-email', 1, 1795796813957);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('VKSivg64LCaso63hohoeUj7EbZ5w7Ib3', '198.51.0.2|/two-factor/enable', 1, 1795796813976);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('LOVykyPRKKP3t4EJmoszBGmc2i9KWURf', '198.51.0.2|/two-factor/verify-totp', 1, 1795796813988);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('P8w0DE7s7MGYsGoG15nhlCPjBkzH1WQH', '198.51.0.4|/sign-in/email', 1, 1795796814014);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('FEl3b3kS2oxd7URZI4npSti7DCu8DMlw', '198.51.0.4|/two-factor/verify-totp', 1, 1795796814066);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('ID62q2Q9ecDhOm6tOwdegPaZtA0utN8V', '198.51.0.5|/sign-in/email', 1, 1795796814081);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('FMeCT8VnarPYZerc3zWJ7DZl4g68I4Ba', '198.51.0.5|/two-factor/verify-backup-code', 1, 1795796814118);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('Qbds64JaE2vB7QROr14fJ0Nml0u3MFhi', '198.51.0.3|/sign-in/social', 1, 1795796814131);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('8sFFt1c5cqvSl1u9pUc8dm0BcNqQyCQB', '198.51.0.3|/callback/github', 1, 1795796814142);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('LPsALdZiQrCJ0khGiAz0YGqD4DMbODKC', '198.51.0.6|/sign-up/email', 1, 1795796814170);
INSERT INTO "rateLimit" ("id", "key", "count", "lastRequest") VALUES ('SgyCRx6S49pYU2BxGvZj3yuFYaVJsh8c', '198.51.0.7|/request-password-reset', 1, 1795796814205);
INSERT INTO "session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "ipAddress", "userAgent", "userId") VALUES ('KzYehPFQMjO9Il6COQhevD8oPb52fd3O', '2026-12-04T16:26:53.877Z', 'TJmDYqqSJHSkIQVUYUnZq5BQ0wUoq63x', '2026-11-27T16:26:53.877Z', '2026-11-27T16:26:53.877Z', '198.51.0.1', 'node', 'Hv4u8KYjm9Yl2lHjsORQwWZmKoy6yvdu');
INSERT INTO "session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "ipAddress", "userAgent", "userId") VALUES ('O0FGBedXChSncDTMFIjzY17MvPB6Sa5V', '2026-12-04T16:26:54.002Z', 'Nxqsmoq8gAnShwsWYx9BQPTlmqIQMMtr', '2026-11-27T16:26:54.002Z', '2026-11-27T16:26:54.002Z', '198.51.0.2', 'node', 'KAGW5RE96vBIe9wOXL1MM45ToX0uildC');
INSERT INTO "session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "ipAddress", "userAgent", "userId") VALUES ('KQoDOHpmY0gQbwpT0Em8OAJKakrW0Vnx', '2026-12-04T16:26:54.074Z', 'Avt3eP8saAlWdJFshh7seFeqQu6R9fHL', '2026-11-27T16:26:54.075Z', '2026-11-27T16:26:54.075Z', '198.51.0.4', 'node', 'KAGW5RE96vBIe9wOXL1MM45ToX0uildC');
INSERT INTO "session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "ipAddress", "userAgent", "userId") VALUES ('gSTXWdtdTSrmov3SEa6MZeNfgkYlQgFE', '2026-12-04T16:26:54.126Z', 'jWFdvxpLr8kizOotjsAuG6qMivZTYqh8', '2026-11-27T16:26:54.126Z', '2026-11-27T16:26:54.126Z', '198.51.0.5', 'node', 'KAGW5RE96vBIe9wOXL1MM45ToX0uildC');
INSERT INTO "session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "ipAddress", "userAgent", "userId") VALUES ('5ijNIdXCxWBlIAhww5qcfCIEocrisfoj', '2026-12-04T16:26:54.161Z', 'z1s7gkhN8hSslaRvoq3KKnuxslN5CkSn', '2026-11-27T16:26:54.162Z', '2026-11-27T16:26:54.162Z', '198.51.0.3', 'node', 'GG01fC2F6a8Rctc4Nxs5oHVoOs6j6doM');
INSERT INTO "twoFactor" ("id", "secret", "backupCodes", "userId", "verified", "failedVerificationCount", "lockedUntil") VALUES ('9qnVKW2QllWV8TCel1nqn3bcFd3DuQhM', '42ffb7e0fd322e6e723e223f5fbcef30c554f7249cb8c484b9d33a61729e2c65d00c2561bea141066b55b4c5327e23da3af5f47e84be409e72d5b21614cd694bf8aa9afde928a9b1', 'd16bfec92e55c9c12abe45670bb64d04c89b5c2a6ce32bdbf963179cfc7d390d39b7a34d1cc4cebbc85e1b1c462a973e249eabd37249143cd4ecbb499565991d4c072c6912cc685b2f7fd2be37e3f578a94a115eedd8433c27b5ad2db42df843b8565d1efdc728f49c6f04a21d045e4ae12e78108e5d9c80f8aae630a649715352c61e6254d30f58df4192c072eab0c7cac32477d42a9f566cb41763c8919bda613f1f834ee4f9', 'KAGW5RE96vBIe9wOXL1MM45ToX0uildC', true, 0, NULL);
INSERT INTO "verification" ("id", "identifier", "value", "expiresAt", "createdAt", "updatedAt") VALUES ('gOqq6Ns0aePzrPZ6pOGums9je31kdSaJ', 'SCW7UvjlbmgPnCqoRjcXDTXps-ZFymGREKCHCGovRYY', 'Hv4u8KYjm9Yl2lHjsORQwWZmKoy6yvdu', '2026-11-27T16:56:54.207Z', '2026-11-27T16:26:54.207Z', '2026-11-27T16:26:54.207Z');
