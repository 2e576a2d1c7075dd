# Geometries become PostGIS's type and vectors pgvector's where these are installed: values, SRIDs and order of the axes as in the source,
# in snapshot, stream and after a restart.
# needs: extensions

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my %has;
for my $extension ('postgis', $source->has_vectors ? 'vector' : ())
{
	$has{$extension} = $postgres->psql("select count(*) from pg_available_extensions where name = '$extension'");
	$postgres->psql("set client_min_messages = warning; create schema $extension; create extension $extension schema $extension") if $has{$extension};
}

my (%table, %values);
if ($has{postgis})
{
	%table = (geo => 'g geometry', typed => 'a point, b linestring, c polygon, d multipoint, e multilinestring, f multipolygon, g geometrycollection', keyed => 'g point not null srid 4326, spatial index (g)', own => 'g point');
	$table{keyed} = 'g point not null, spatial index (g)' unless $source->is_mysql;
	my @texts = ('POINT(1.5 -2)', 'LINESTRING(0 0, 1 1, 2 0)', 'POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 4 2, 4 4, 2 2))', 'MULTIPOINT(1 1, 2 2)', 'MULTILINESTRING((0 0, 1 1), (2 2, 3 3))', 'MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))', 'GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))');
	$values{geo} = [ (map { ("st_geomfromtext('$_')", "st_geomfromtext('$_', 4326)") } @texts), "st_geomfromtext('GEOMETRYCOLLECTION EMPTY')", "st_geomfromtext('POINT(1e300 -1e-300)')", "st_geomfromtext('POINT(500000 6000000)', 3857)",
		"st_geomfromtext('GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT(1 2)), GEOMETRYCOLLECTION EMPTY)', 4326)", 'null' ];
	$values{typed} = [ join(', ', map { "st_geomfromtext('$_')" } @texts), join(', ', ('null') x 7) ];
	$values{keyed} = [ map { "st_geomfromtext('$_', 4326)" } 'POINT(48.2 16.3)', 'POINT(-89 179)' ];
	$values{own} = [ "st_geomfromtext('POINT(48.2 16.3)', 4326)", 'null' ];
}
if ($has{vector})
{
	$table{vectors} = 'v vector(3), w vector(2000)';
	$values{vectors} = [ q{to_vector('[1, 2.5, -3e-5]'), null}, q{to_vector('[0.1, 5.61, 16777216]'), to_vector(concat('[', repeat('0.1,', 1999), '7]'))}, 'null, null' ];
	s/to_vector/vec_fromtext/g for $source->is_mariadb ? @{ $values{vectors} } : ();
}
my @names = sort keys %table;

my $from = 0;
sub insert_rows
{
	for my $name (@names)
	{
		my $id = $from;
		$source->sql(map { $id++; "insert into shop.$name values ($id, $_)" } @{ $values{$name} });
	}
	$from += 100;
}

SKIP:
{
	skip('neither PostGIS nor pgvector is there', 1) unless %table;
	$source->sql('create database shop', q{set sql_mode = ''}, map { "create table shop.$_ (id int primary key, $table{$_})" } @names);
	insert_rows();
	$postgres->psql('create schema shop; create table shop.own (id integer primary key, g postgis.geography)') if $has{postgis};
	my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	my @compared = grep { $_ ne 'own' } @names;
	$pipeline->are_same('snapshot', { map { $_ => ($_ eq 'vectors' ? 'M39' : 'M27') . ": $_" } @compared }, @compared);
	insert_rows();
	$source->sql(map { "delete from shop.$_ where id = 2" } @names);
	$source->sql("update shop.geo a join shop.geo b on b.id = a.id + 1 set a.g = b.g where a.id > 100") if $has{postgis};
	$source->sql("update shop.vectors a join shop.vectors b on b.id = a.id + 1 set a.v = b.v, a.w = b.w where a.id > 100") if $has{vector};
	$pipeline->wait_for_catchup->are_same('stream', {}, @compared);
	$postgres->stop;
	insert_rows();
	$source->sql(map { "delete from shop.$_ where id = 102" } @names);
	$postgres->start;
	$pipeline->wait_for_state('streaming')->wait_for_catchup->are_same('restart', {}, @compared);
	is($pipeline->status('tables_stopped'), 0, 'no table is stopped');
	$pipeline->is_verified('cdc_verify finds the same', @compared);

	if ($has{postgis})
	{
		is($postgres->psql("select string_agg(distinct t.typname, ',') from pg_attribute a join pg_type t on t.oid = atttypid where attrelid = 'shop.typed'::regclass and attnum > 1"), 'geometry', 'M27: the type is PostGIS\'s');
		# MySQL takes the text of SRID 4326 as latitude, longitude and stores longitude, latitude; MariaDB stores what was written
		my $point = $source->is_mysql ? 'POINT(16.3 48.2)' : 'POINT(48.2 16.3)';
		is($postgres->psql('select postgis.st_asewkt(g) from shop.keyed where id = 1'), "SRID=4326;$point", 'M27: SRID and order of the axes');
		is($postgres->psql('select postgis.st_asewkt(g::postgis.geometry) from shop.own where id = 1'), "SRID=4326;$point", 'M27: a target of type geography');
		ok($postgres->poll("select count(*) from pg_indexes where schemaname = 'shop' and tablename = 'keyed' and indexdef like '%gist%'", '1'), 'M27: a spatial index becomes a GiST index');

		# a ring that is not closed: MariaDB stores it when it comes as bytes; MySQL refuses it
		if ($source->is_mariadb)
		{
			$source->sql("insert into shop.geo values (1000, x'0000000001030000000100000003000000" . '00000000000000000000000000000000' . '000000000000f03f0000000000000000' . "0000000000000040000000000000f03f')");
			is($source->query_value('select count(*) from shop.geo where id = 1000 and g is not null'), 1, 'M27: the source has a ring that is not closed');
			$pipeline->wait_for_catchup;
			$pipeline->is_same('M27: and so has the mirror', 'geo');
		}
	}
	is($postgres->psql("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'shop.vectors'::regclass and attname = 'v'"), 'vector.vector(3)', 'M39: the type is pgvector\'s') if $has{vector};
}
for my $extension (sort keys %has)
{
	SKIP: { skip("extension $extension is not there: its types were not tested", 1) unless $has{$extension}; pass("extension $extension was there"); }
}

done_testing();
