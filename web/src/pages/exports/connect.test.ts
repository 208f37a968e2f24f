import { expect, test } from "vitest";
import type { Export } from "../../api/types";
import { ways } from "./connect";

function offered(kind: string, parameters: Record<string, string>, hints: string[] = []): Export {
  return { name: "disk", pool: "tank", volume: "v", kind, parameters, hints, state: "online", sessions: 0 };
}

function of(kind: string, parameters: Record<string, string>, hints?: string[]): Record<string, string> {
  return Object.fromEntries(
    ways(offered(kind, parameters, hints)).map((way) => [way.system, way.lines.join("\n")]),
  );
}

test("iSCSI is for Linux, Windows, VMware and QEMU, by the name that the daemon made", () => {
  const hints = ["iscsiadm -m node -T iqn.2026-01.org.convect:disk -p [::1]:3260 --login"];
  const told = of("iscsi", { portal: "[::1]:3260,10.0.0.1:3260" }, hints);
  expect(Object.keys(told)).toEqual(["Linux", "Windows", "VMware ESXi", "QEMU"]);
  expect(told["Windows"]).toContain("-TargetPortalAddress ::1 -TargetPortalPortNumber 3260");
  expect(told["Windows"]).toContain("-NodeAddress iqn.2026-01.org.convect:disk");
  expect(told["QEMU"]).toContain("iscsi://[::1]:3260/iqn.2026-01.org.convect:disk/0");
});

test("NBD is told by its socket or its port", () => {
  expect(of("nbd", { listen: "unix:/run/a.sock" })["Linux"]).toContain(
    "nbd-client -unix /run/a.sock /dev/nbd0",
  );
  expect(of("nbd", { listen: "tcp:10.0.0.1:10809" })["QEMU"]).toContain(
    "server.host=10.0.0.1,server.port=10809",
  );
});

test("a virtual machine shares its memory and comes back", () => {
  const told = of("vhost-user-blk", { path: "/run/v.sock", queues: "2" });
  expect(told["QEMU"]).toContain("path=/run/v.sock,reconnect=1");
  expect(told["QEMU"]).toContain("share=on");
  expect(told["libvirt"]).toContain("queues='2'");
});

test("what is not offered cannot be connected to", () => {
  expect(ways({ ...offered("nbd", {}), state: "failed" })).toEqual([]);
});
