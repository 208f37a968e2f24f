// The commands that connect a host or a virtual machine to an export. Pure.
import type { Export } from "../../api/types";

export interface Way {
  system: "Linux" | "Windows" | "VMware ESXi" | "QEMU" | "libvirt";
  lines: string[];
}

/** An address as it is written for another host: `ADDRESS:PORT`, taken apart. */
function hostAndPort(portal: string): [string, string] {
  const at = portal.lastIndexOf(":");
  return [portal.slice(0, at).replace(/^\[|\]$/g, ""), portal.slice(at + 1)];
}

function iscsi(of: Export): Way[] {
  const portal = (of.parameters["portal"] ?? "").split(",")[0] ?? "";
  const [host, port] = hostAndPort(portal);
  const login = of.hints.find((hint) => hint.includes("--login"));
  const target = of.parameters["target"] ?? /-T (\S+)/.exec(login ?? "")?.[1] ?? "TARGET";
  const lun = of.parameters["lun"] ?? "0";
  return [
    {
      system: "Linux",
      lines: [
        `iscsiadm -m discovery -t sendtargets -p ${portal}`,
        `iscsiadm -m node -T ${target} -p ${portal} --login`,
      ],
    },
    {
      system: "Windows",
      lines: [
        `New-IscsiTargetPortal -TargetPortalAddress ${host} -TargetPortalPortNumber ${port}`,
        `Connect-IscsiTarget -NodeAddress ${target} -IsPersistent $true`,
        "Get-Disk | Where-Object BusType -eq iSCSI",
      ],
    },
    {
      system: "VMware ESXi",
      lines: [
        "esxcli iscsi software set --enabled=true",
        "esxcli iscsi adapter list",
        `esxcli iscsi adapter discovery sendtarget add --adapter=vmhba64 --address=${portal}`,
        "esxcli storage core adapter rescan --adapter=vmhba64",
      ],
    },
    {
      system: "QEMU",
      lines: [`qemu-system-x86_64 ... -drive file=iscsi://${portal}/${target}/${lun},format=raw,if=virtio`],
    },
  ];
}

function nbd(of: Export): Way[] {
  const listen = of.parameters["listen"] ?? "";
  const unix = listen.startsWith("unix:");
  const place = listen.replace(/^(unix|tcp):/, "");
  const [host, port] = hostAndPort(place);
  const linux = unix ? `nbd-client -unix ${place} /dev/nbd0` : `nbd-client ${host} ${port} /dev/nbd0`;
  const server = unix
    ? `server.type=unix,server.path=${place}`
    : `server.type=inet,server.host=${host},server.port=${port}`;
  return [
    { system: "Linux", lines: ["modprobe nbd", linux] },
    { system: "QEMU", lines: [`qemu-system-x86_64 ... -drive driver=nbd,${server},format=raw,if=virtio`] },
  ];
}

function vhost(of: Export): Way[] {
  const path = of.parameters["path"] ?? "";
  const queues = of.parameters["queues"] ?? "4";
  return [
    {
      system: "QEMU",
      lines: [
        "qemu-system-x86_64 ... \\",
        "  -object memory-backend-memfd,id=mem,size=2G,share=on -m 2G -numa node,memdev=mem \\",
        `  -chardev socket,id=${of.name},path=${path},reconnect=1 \\`,
        `  -device vhost-user-blk-pci,chardev=${of.name},num-queues=${queues}`,
      ],
    },
    {
      system: "libvirt",
      lines: [
        "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>",
        "<disk type='vhostuser' device='disk'>",
        `  <driver name='qemu' type='raw' queues='${queues}'/>`,
        `  <source type='unix' path='${path}'><reconnect enabled='yes' timeout='1'/></source>`,
        "  <target dev='vda' bus='virtio'/>",
        "</disk>",
      ],
    },
  ];
}

/** The ways to connect, by system; none for an export that is not offered. */
export function ways(of: Export): Way[] {
  if (of.state !== "online") return [];
  switch (of.kind) {
    case "iscsi":
      return iscsi(of);
    case "nbd":
      return nbd(of);
    case "vhost-user-blk":
      return vhost(of);
    default:
      return [{ system: "Linux", lines: of.hints }];
  }
}
