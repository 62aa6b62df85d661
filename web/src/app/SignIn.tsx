import { Logo } from "../ui/Glyph.tsx";

/** For who is not signed in where nothing is public. */
export function SignIn() {
  return (
    <main class="sign-in">
      <Logo />
      <h1>Sign in to hubmesh</h1>
      <p>Nothing here is public. Open the login link that the server printed when it started:</p>
      <pre><code>hubmesh serve</code></pre>
      <p>or ask somebody with administrator rights for a token of your own:</p>
      <pre><code>hubmesh token create --as YOU</code></pre>
      <p class="muted">A login link works once. When yours was used already, start the server again or make a new token.</p>
    </main>
  );
}
