// What the scenarios work on: a space of their own, so that they can run on a server that is in use.
import { deflateSync } from "node:zlib";

export const richDocument = `# Launch plan

The plan for the **launch**, with everything that a document may hold. See the [budget](../budget)
and what lies [below](details).

## Milestones

| Milestone | Owner | Due | Cost |
|---|---|---|--:|
| Private beta | Alice | 2026-03-01 | 12,000 |
| Press release | Bob | 2026-04-15 | 3,500 |
| Launch event | Emma | 2026-05-02 | 48,000 |

## How it is deployed

\`\`\`go
// Serve starts the mesh and returns when ctx ends.
func Serve(ctx context.Context, addr string) error {
	mesh, err := hubmesh.New(hubmesh.Options{Data: "data", Limit: 42})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return mesh.Serve(ctx, addr)
}
\`\`\`

> A read that is slow says why.

![The shape of the plan](shape.png)

<div style="background: linear-gradient(135deg, #0d47a1 0%, #1976d2 100%); border-radius: 12px; padding: 20px 24px; color: #fff;">
  <div style="font-size: 1.3rem; font-weight: 700;">A block with colours of its own</div>
  <div style="opacity: 0.92;">It stays readable in both themes.</div>
</div>

<div style="background: #fff8e1; border: 1px solid #ffe082; border-radius: 8px; padding: 12px;">A light note without a text colour.</div>

### What is left

1. Write the release notes
2. Tell everybody
   - by mail
   - in the forum

### Questions

Nobody asked any.
`;

const word = "workspace.GetMeshNodeStream(path).WithLatestVersionOfTheNode(current=>current.With(content))";
/** A document whose words do not fit on the screen of a phone, wherever text may stand. */
export const wide = {
  nodeType: "Markdown", name: `Wide-${word}`, description: `Always use ${word} for it`, category: word,
  content: { $type: "Markdown", markdown: `# Head ${word}

Text ${word} and \`${word}\` and [${word}](https://example.org/${word}) and **${word}**.

## ${word}

- item ${word}
  1. below \`${word}\`
     > said ${word}

| Column ${word} | Other | Third | Fourth |
|---|---|---|---|
| ${word} | \`${word}\` | short | ${"many words ".repeat(20)} |

\`\`\`go
${word} // ${word}
\`\`\`

<details><summary>${word}</summary>${word}</details>

![${word}](missing-${word}.png)

<div style="display: flex; gap: 8px"><div style="padding: 8px">${"words ".repeat(8)}</div><div>${"words ".repeat(8)}</div></div>
` },
};

/** A space with a document, data and a file. @param {import("./harness.mjs").Harness} harness */
export async function makeSpace(harness) {
  const space = `E2E${Date.now().toString(36)}`;
  await harness.create(space, { nodeType: "Space", name: "Launch team", description: "Where the launch is planned" });
  await harness.document(`${space}/plan`, "Launch plan", richDocument);
  await harness.document(`${space}/plan/details`, "Details", "# Details\n\nWhat lies below.\n");
  await harness.document(`${space}/budget`, "Budget", "# Budget\n\nNumbers.\n");
  await harness.create(`${space}/wide`, wide);
  await harness.create(`${space}/Supplier`, { nodeType: "NodeType", name: "Supplier", content: { $type: "NodeTypeDefinition" } });
  await harness.create(`${space}/pâturage`, {
    nodeType: `${space}/Supplier`, name: "Gai pâturage", description: "Cheese from the mountains",
    content: { company: "Gai pâturage", city: "Annecy", active: true, rating: 4.5, site: "https://example.org/", tags: ["cheese", "dairy"], contacts: [{ name: "Eliane", phone: "38.76.98.06" }, { name: "Noël", phone: "38.76.98.58" }] },
  });
  await harness.api("PUT", `/api/files/${space}/plan/content/shape.png`, png(320, 120));
  return space;
}

/** A picture: a diagonal of blue on white. @param {number} width @param {number} height */
export function png(width, height) {
  const rows = Buffer.alloc((width * 3 + 1) * height, 255);
  for (let y = 0; y < height; y++) {
    rows[y * (width * 3 + 1)] = 0;
    for (let x = 0; x < width; x++) {
      if (Math.abs(x * height - y * width) < width * 12 || y < 2 || y > height - 3) rows.set([22, 104, 214], y * (width * 3 + 1) + 1 + x * 3);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** @param {string} type @param {Buffer} data */
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

/** @param {Buffer} bytes */
function crc(bytes) {
  let c = 0xffffffff;
  for (const byte of bytes) {
    c ^= byte;
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  }
  return (c ^ 0xffffffff) >>> 0;
}
