-- The tables of Blazar 18.0.0, as its migrations make them on MariaDB: the output of
--   blazar-db-manage upgrade head
--   mariadb-dump --no-data --compact
-- without its settings. On SQLite and PostgreSQL these migrations fail.
CREATE TABLE `alembic_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `computehost_allocations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `compute_host_id` varchar(36) DEFAULT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `compute_host_id` (`compute_host_id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `computehost_allocations_ibfk_1` FOREIGN KEY (`compute_host_id`) REFERENCES `computehosts` (`id`),
  CONSTRAINT `computehost_allocations_ibfk_2` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `computehost_extra_capabilities` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `computehost_id` varchar(36) DEFAULT NULL,
  `capability_value` mediumtext NOT NULL,
  `property_id` varchar(255) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `computehost_id` (`computehost_id`),
  KEY `computehost_resource_property_id_fk` (`property_id`),
  CONSTRAINT `computehost_extra_capabilities_ibfk_1` FOREIGN KEY (`computehost_id`) REFERENCES `computehosts` (`id`),
  CONSTRAINT `computehost_resource_property_id_fk` FOREIGN KEY (`property_id`) REFERENCES `resource_properties` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `computehost_reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  `resource_properties` mediumtext DEFAULT NULL,
  `count_range` varchar(36) DEFAULT NULL,
  `hypervisor_properties` mediumtext DEFAULT NULL,
  `aggregate_id` int(11) DEFAULT NULL,
  `before_end` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `computehost_reservations_ibfk_1` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `computehost_resource_inventory` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `computehost_id` varchar(36) DEFAULT NULL,
  `resource_class` varchar(255) NOT NULL,
  `total` int(11) NOT NULL,
  `reserved` int(11) NOT NULL,
  `min_unit` int(11) NOT NULL,
  `max_unit` int(11) NOT NULL,
  `step_size` int(11) NOT NULL,
  `allocation_ratio` float NOT NULL,
  PRIMARY KEY (`id`),
  KEY `computehost_id` (`computehost_id`),
  CONSTRAINT `computehost_resource_inventory_ibfk_1` FOREIGN KEY (`computehost_id`) REFERENCES `computehosts` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `computehost_trait` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `computehost_id` varchar(36) DEFAULT NULL,
  `trait` varchar(255) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `computehost_id` (`computehost_id`),
  CONSTRAINT `computehost_trait_ibfk_1` FOREIGN KEY (`computehost_id`) REFERENCES `computehosts` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `computehosts` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `vcpus` int(11) NOT NULL,
  `cpu_info` mediumtext NOT NULL,
  `hypervisor_type` mediumtext NOT NULL,
  `hypervisor_version` int(11) NOT NULL,
  `hypervisor_hostname` varchar(255) DEFAULT NULL,
  `memory_mb` int(11) NOT NULL,
  `local_gb` int(11) NOT NULL,
  `status` varchar(13) DEFAULT NULL,
  `service_name` varchar(255) DEFAULT NULL,
  `trust_id` varchar(36) NOT NULL,
  `reservable` tinyint(1) NOT NULL DEFAULT 1,
  `availability_zone` varchar(255) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `events` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `lease_id` varchar(36) DEFAULT NULL,
  `event_type` varchar(66) DEFAULT NULL,
  `time` datetime DEFAULT NULL,
  `status` varchar(13) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `lease_id` (`lease_id`),
  CONSTRAINT `events_ibfk_1` FOREIGN KEY (`lease_id`) REFERENCES `leases` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `floatingip_allocations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `floatingip_id` varchar(36) DEFAULT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `floatingip_id` (`floatingip_id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `floatingip_allocations_ibfk_1` FOREIGN KEY (`floatingip_id`) REFERENCES `floatingips` (`id`),
  CONSTRAINT `floatingip_allocations_ibfk_2` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `floatingip_reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  `network_id` varchar(255) NOT NULL,
  `amount` int(11) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `floatingip_reservations_ibfk_1` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `floatingips` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `floating_network_id` varchar(255) NOT NULL,
  `subnet_id` varchar(255) NOT NULL,
  `floating_ip_address` varchar(255) NOT NULL,
  `reservable` tinyint(1) NOT NULL DEFAULT 1,
  PRIMARY KEY (`id`),
  UNIQUE KEY `subnet_id` (`subnet_id`,`floating_ip_address`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `instance_reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  `vcpus` int(11) NOT NULL,
  `memory_mb` int(11) NOT NULL,
  `disk_gb` int(11) NOT NULL,
  `amount` int(11) NOT NULL,
  `affinity` tinyint(1) DEFAULT NULL,
  `flavor_id` varchar(36) DEFAULT NULL,
  `aggregate_id` int(11) DEFAULT NULL,
  `server_group_id` varchar(36) DEFAULT NULL,
  `resource_properties` mediumtext DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `instance_reservations_ibfk_1` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `leases` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `name` varchar(80) NOT NULL,
  `user_id` varchar(255) DEFAULT NULL,
  `project_id` varchar(255) DEFAULT NULL,
  `start_date` datetime NOT NULL,
  `end_date` datetime NOT NULL,
  `trust_id` varchar(36) DEFAULT NULL,
  `status` varchar(255) DEFAULT NULL,
  `degraded` tinyint(1) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `required_floatingips` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `address` varchar(255) NOT NULL,
  `floatingip_reservation_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `floatingip_reservation_id` (`floatingip_reservation_id`),
  CONSTRAINT `required_floatingips_ibfk_1` FOREIGN KEY (`floatingip_reservation_id`) REFERENCES `floatingip_reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `lease_id` varchar(36) NOT NULL,
  `resource_id` varchar(36) DEFAULT NULL,
  `resource_type` varchar(66) DEFAULT NULL,
  `status` varchar(13) DEFAULT NULL,
  `missing_resources` tinyint(1) NOT NULL DEFAULT 0,
  `resources_changed` tinyint(1) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  KEY `lease_id` (`lease_id`),
  CONSTRAINT `reservations_ibfk_1` FOREIGN KEY (`lease_id`) REFERENCES `leases` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `resource_properties` (
  `id` varchar(36) NOT NULL,
  `resource_type` varchar(255) NOT NULL,
  `property_name` varchar(255) NOT NULL,
  `private` tinyint(1) NOT NULL DEFAULT 0,
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `resource_type` (`resource_type`,`property_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
